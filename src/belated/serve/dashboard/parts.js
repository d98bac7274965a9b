// The parts that outcomes are made of, and what each option has in each of them.

import { byId, el, write, writeTo } from "/static/dom.js";
import { average, percent, plural, total } from "/static/words.js";

const LISTED = 100; // options, as in the table above

export function showParts({ parts, arms, reward_wait: wait, default_outcome: fallback }) {
  const names = Object.keys(parts ?? {});
  byId("parts").hidden = names.length === 0;
  if (names.length === 0) return;
  const weights = names.reduce((sum, name) => sum + parts[name].weight, 0);
  writeTo("parts-words", `The outcome of a decision is the score of its parts, from 0 (all at their worst) to 1 (all at their best). ${missingWords(wait, fallback)}`);
  fill(byId("parts-weights"), names.map((name) => [name, weightWords(parts[name], weights)]), (item, [name, words]) => {
    write(item, `${name}: ${words}`);
  });
  showTable(names, parts, arms.slice(0, LISTED));
}

function missingWords(wait, fallback) {
  if (wait === null) return "A decision is open until all its parts have come.";
  if (fallback === null) return "A decision whose parts have not all come when its wait ends has no outcome. Parts that come later still count.";
  return "When the wait of a decision ends, its missing parts count as their defaults. Parts that come later still count.";
}

function weightWords({ lowest, highest, better, weight, default: fallback }, weights) {
  const silence = fallback === null ? "" : `, ${total(fallback)} if it does not come`;
  return `${percent(weight / weights)} of the score, from ${total(lowest)} to ${total(highest)}, ${better} is better${silence}`;
}

function showTable(names, parts, arms) {
  fill(byId("parts-head"), ["Option", ...names], (cell, name) => write(cell, name), () => el("th", { scope: "col" }));
  fill(byId("parts-rows"), arms, (row, arm) => {
    const cells = [arm.name, ...names.map((name) => meanWords(arm.parts[name], parts[name]))];
    fill(row, cells, (cell, words) => write(cell, words), (index) => (index === 0 ? el("th", { scope: "row" }) : el("td", { "data-label": names[index - 1], "data-testid": `part-${arm.name}-${names[index - 1]}` })));
  }, () => el("tr"));
}

function meanWords({ mean, reports }, range) {
  return mean === null ? "not yet known" : `${average(mean, range)} (${plural(reports, "report")})`;
}

/** Make as many children as there are items, and write each. */
function fill(container, items, update, create = () => el("li")) {
  while (container.children.length > items.length) container.lastChild.remove();
  items.forEach((item, index) => {
    if (container.children.length <= index) container.append(create(index));
    update(container.children[index], item);
  });
}
