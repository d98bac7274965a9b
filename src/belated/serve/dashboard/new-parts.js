// The fields of the form that say what outcomes are made of.

import { byId, el } from "/static/dom.js";

/** Add the fields of one more part. Returns the first of them. */
export function addPart() {
  const part = `Part ${byId("new-parts").children.length + 1}`;
  const field = (what, more) => el("input", { "data-field": what, type: "number", step: "any", ...more });
  const labelled = (label, input) => el("div", {}, el("label", {}, `${label} `, input));
  const name = el("input", { "data-field": "name", "aria-label": part, placeholder: "e.g. quality", autocomplete: "off" });
  const better = el("select", { "data-field": "better" }, el("option", { value: "higher" }, "higher"), el("option", { value: "lower" }, "lower"));
  byId("new-parts").append(
    el(
      "div",
      { role: "group", "aria-label": part, class: "new-part" },
      name,
      el("div", { class: "pair" }, labelled("Smallest value", field("lowest", { value: 0 })), labelled("Largest value", field("highest", { value: 1 }))),
      el("div", { class: "pair" }, labelled("Which is better", better), labelled("Weight", field("weight", { value: 1, min: 0 }))),
      labelled("If it has not come when the wait ends, count", field("default", { placeholder: "no outcome" })),
    ),
  );
  return name;
}

/** The parts as the API takes them, or null if none has a name. */
export function partsIn() {
  const found = [...byId("new-parts").children].map(partOf).filter(([name]) => name !== "");
  const twice = found.find(([name], index) => found.findIndex(([other]) => other === name) < index);
  if (twice) throw new Error(`Two parts are called “${twice[0]}”. Give each its own name.`);
  return found.length === 0 ? null : { parts: Object.fromEntries(found) };
}

function partOf(group) {
  const value = (what) => group.querySelector(`[data-field="${what}"]`).value.trim();
  const fallback = value("default");
  const [lowest, highest, weight] = ["lowest", "highest", "weight"].map((what) => Number(value(what)));
  return [value("name"), { lowest, highest, weight, better: value("better"), ...(fallback === "" ? {} : { default: Number(fallback) }) }];
}
