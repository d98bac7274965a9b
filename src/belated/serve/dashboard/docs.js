// The page with the API docs, built from the server's OpenAPI document.

import { byId, el } from "/static/dom.js";

const METHODS = ["get", "post"];

function curl(method, path, body) {
  const address = `${location.origin}${path.replaceAll("{", "").replaceAll("}", "").replace("decision_id", "DECISION_ID")}`;
  const verb = method === "get" ? "curl" : "curl -X POST";
  const sent = body === undefined ? "" : ` \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  return `${verb} ${address}${sent}`;
}

/** Text with its words between backticks as code. */
function marked(text = "") {
  return text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

/** The name of the document behind a schema, or its media type. */
function documentOf(content) {
  const [media, { schema }] = Object.entries(content)[0];
  return schema.$ref ? schema.$ref.split("/").at(-1) : media;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  return schema.type === "array" ? `list of ${typeOf(schema.items ?? {})}` : (schema.type ?? "anything");
}

function fieldsOf({ properties = {}, required = [] }) {
  const rows = Object.entries(properties).map(([name, schema]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("code", {}, name)),
      el("td", {}, typeOf(schema)),
      el("td", {}, required.includes(name) ? "required" : "optional"),
      el("td", {}, ...marked(schema.description ?? schema.anyOf?.find((one) => one.description)?.description)),
    ),
  );
  return el("table", { class: "stacking" }, el("tbody", {}, ...rows));
}

function answers(responses) {
  const rows = Object.entries(responses).map(([status, { description, content }]) =>
    el("tr", {}, el("th", { scope: "row" }, status), el("td", {}, ...marked(description)), el("td", {}, content ? documentOf(content) : "")),
  );
  return el("table", {}, el("tbody", {}, ...rows));
}

function section(method, path, operation, schemas) {
  const content = operation.requestBody?.content["application/json"];
  const example = content?.examples?.usual?.value;
  const parts = [
    el("h2", {}, operation.summary),
    el("p", {}, el("code", {}, `${method.toUpperCase()} ${path}`)),
    el("p", { class: "quiet" }, ...marked(operation.description)),
    el("pre", {}, el("code", {}, curl(method, path, example))),
  ];
  const taken = content && schemas[content.schema.$ref.split("/").at(-1)];
  if (taken && Object.keys(taken.properties ?? {}).length) parts.push(el("h3", {}, "Request body"), fieldsOf(taken));
  const said = operation.parameters.filter((one) => one.in !== "path");
  if (said.length) {
    const items = said.map((one) => el("li", {}, el("code", {}, one.name), ` (${one.in}) `, ...marked(one.description)));
    parts.push(el("h3", {}, "Optional parameters"), el("ul", {}, ...items));
  }
  parts.push(el("details", {}, el("summary", {}, "Responses"), answers(operation.responses)));
  return el("section", {}, ...parts);
}

function documents(schemas) {
  const parts = Object.entries(schemas).map(([name, schema]) =>
    el("details", { class: "card" }, el("summary", {}, name), el("p", { class: "quiet" }, ...marked(schema.description)), fieldsOf(schema)),
  );
  return [el("h2", {}, "Documents"), ...parts];
}

const api = await (await fetch("/openapi.json")).json();
byId("about").append(...api.info.description.split("\n\n").map((words) => el("p", {}, ...marked(words))));
for (const [path, methods] of Object.entries(api.paths)) {
  for (const method of METHODS) {
    if (methods[method]) byId("operations").append(section(method, path, methods[method], api.components.schemas));
  }
}
byId("operations").append(...documents(api.components.schemas));
