// The list of experiments, updated live.

import { byId, el, part, showEach, writeTo, write } from "/static/dom.js";
import { prepareForm } from "/static/create.js";
import { follow } from "/static/live.js";
import { get } from "/static/server.js";
import { count, moment, plural, stateWord } from "/static/words.js";

const FIRST_PAGE = "/v1/experiments?limit=100";
let first = null; // kept current by the server
let rest = []; // further pages, as they were when loaded
let next = null;

function show(list) {
  if (first === null && list.experiments.length === 0) byId("new").open = true;
  if (rest.length === 0) next = list.next;
  first = list.experiments;
  draw();
}

async function showMore() {
  const page = await get(`${FIRST_PAGE}&cursor=${encodeURIComponent(next)}`);
  rest = rest.concat(page.experiments);
  next = page.next;
  draw();
}

function draw() {
  const names = new Set(first.map((experiment) => experiment.name));
  const all = [...first, ...rest.filter((experiment) => !names.has(experiment.name))];
  const running = all.filter((experiment) => experiment.closed_at === null && !experiment.failed);
  const failed = all.filter((experiment) => experiment.closed_at === null && experiment.failed).length;
  const warning = failed === 0 ? "" : `${plural(failed, "experiment")} ${failed === 1 ? "has" : "have"} failed. `;
  const sum = (field) => all.reduce((total, experiment) => total + experiment[field], 0);

  byId("list").hidden = all.length === 0;
  byId("more").hidden = next === null;
  writeTo("headline", all.length === 0 ? "No experiments yet." : `${plural(running.length, "experiment")} running.`);
  const figures = `${plural(sum("decisions"), "decision")} made, ${count(sum("outstanding"))} still waiting for an outcome.`;
  const scope = next === null ? "" : ` (of the ${count(all.length)} experiments shown)`;
  const hint = "Create one below. Name its options, and say what a good outcome is.";
  writeTo("lead", all.length === 0 ? hint : warning + figures + scope);
  showEach(byId("rows"), all, (experiment) => experiment.name, createRow, updateRow);
}

function createRow({ name }) {
  const link = el("a", { href: `/experiments/${encodeURIComponent(name)}` }, name);
  const cell = (label, part, testid) =>
    el("td", { "data-label": label }, el("span", { "data-part": part, "data-testid": testid && `${testid}-${name}` }));
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, link),
    el("td", {}, el("span", { class: "badge", "data-part": "state", "data-testid": `state-${name}` })),
    cell("Decisions", "decisions", "decisions"),
    cell("Waiting for an outcome", "outstanding", "outstanding"),
    cell("Options", "arms"),
    cell("Started", "created"),
  );
}

function updateRow(row, experiment) {
  part(row, "state").dataset.state = experiment.state;
  write(part(row, "state"), stateWord(experiment.state));
  write(part(row, "decisions"), count(experiment.decisions));
  write(part(row, "outstanding"), count(experiment.outstanding));
  write(part(row, "arms"), count(experiment.arms));
  write(part(row, "created"), moment(experiment.created_at));
}

function fail(problem) {
  writeTo("headline", "The list cannot be shown.");
  writeTo("lead", problem.message);
}

byId("more").addEventListener("click", showMore);
prepareForm();
follow("/v1/live", show, fail);
