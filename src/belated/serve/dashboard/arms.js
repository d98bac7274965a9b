// How likely each option is chosen, and what it earned.

import { byId, el, part, showEach, svg, writeTo, write } from "/static/dom.js";
import { assignColours, colour, DRAWN } from "/static/colours.js";
import { average, count, percent, plural, total } from "/static/words.js";

/** The average to show. An open decision counts as the default outcome, if there is one. */
const meanOf = (arm) => arm.provisional_mean ?? arm.mean;

const LISTED = 100; // more rows belong into a spreadsheet

/** The options to draw. If there are too many, draws the likeliest, and the others as one. Draws retired options if there is room. */
export function drawnArms({ arms, rest, history }) {
  const hasLine = (arm) => history.probabilities[arms.indexOf(arm)] !== null;
  const active = arms.filter((arm) => arm.probability !== null);
  if (active.length <= DRAWN) {
    const retired = arms.filter((arm) => arm.probability === null && arm.chosen > 0 && hasLine(arm)).slice(0, DRAWN - active.length);
    assignColours([...active, ...retired].map((arm) => arm.name));
    return { drawn: active, retired, others: [], rest };
  }
  const sorted = active.toSorted((a, b) => b.probability - a.probability);
  assignColours(sorted.slice(0, DRAWN).map((arm) => arm.name));
  return { drawn: sorted.slice(0, DRAWN), retired: [], others: sorted.slice(DRAWN), rest };
}

export function showProbabilities({ drawn, others, rest }) {
  const rows = drawn.map(({ name, probability }) => ({ name, probability, testid: `probability-${name}` }));
  const number = others.length + (rest?.active ?? 0);
  if (number > 0) {
    const probability = others.reduce((sum, arm) => sum + arm.probability, rest?.probability ?? 0);
    rows.push({ name: `${count(number)} others together`, probability, testid: "probability-others", isRest: true });
  }
  byId("bars").hidden = rows.length === 0;
  showEach(byId("bars"), rows, (row) => row.testid, createBar, updateBar);
}

function createBar({ name, testid, isRest }) {
  return el(
    "li",
    { class: isRest ? "rest" : null },
    el("span", { class: "name", title: name, "data-part": "name" }, name),
    el("span", { class: "value", "data-part": "value", "data-testid": testid }),
    el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill", "data-part": "fill" })),
  );
}

function updateBar(bar, { name, probability }) {
  write(part(bar, "name"), name); // the number of the others may change
  write(part(bar, "value"), percent(probability));
  part(bar, "fill").style.width = `${100 * probability}%`;
  part(bar, "fill").style.background = colour(name);
}

export function showEarnings({ arms, rest, outcome, default_outcome: fallback }) {
  const known = arms.filter((arm) => arm.mean !== null);
  const scale = commonScale(known, outcome);
  writeTo("earned-hint", earnedHint(known, outcome, fallback));
  write(byId("scale-low"), known.length ? average(scale.low, outcome) : "");
  write(byId("scale-high"), known.length ? average(scale.high, outcome) : "");
  const listed = inReadingOrder(arms, outcome).slice(0, LISTED);
  const missing = arms.length - listed.length + (rest?.arms ?? 0);
  writeTo("earned-rest", missing > 0 ? `This table has the likeliest and the best ${LISTED} options. The download below has the other ${count(missing)} too.` : "");
  showEach(byId("earnings"), listed, (arm) => arm.name, createEarning, (row, arm) => updateEarning(row, arm, outcome, scale));
}

function earnedHint(known, outcome, fallback) {
  if (known.length === 0) return "Averages appear here once outcomes have arrived.";
  const direction = outcome.better === "higher" ? "further right is better" : "further left is better";
  const dot = fallback === null ? `The dot is the average of the outcomes that are known (${direction}).` : `The dot is the average so far (${direction}). Open decisions count as ${total(fallback)} in it.`;
  const line = "The line is a range for the true average over all decisions that chose the option, with open ones at both extremes. In 95 of 100 experiments it contains that average at every moment.";
  return `${dot} ${line} Options are chosen at different times. So ranges that do not overlap prove a difference only if nothing changes with time. The top of the page compares them fairly.`;
}

/** Few options keep their order. Of many, the best come first. */
function inReadingOrder(arms, { better }) {
  if (arms.length <= DRAWN) return arms;
  const worth = (arm) => (arm.mean === null ? -Infinity : better === "higher" ? meanOf(arm) : -meanOf(arm));
  return arms.toSorted((a, b) => (worth(a) === worth(b) ? 0 : worth(b) - worth(a)));
}

/** One scale for all options, a little wider than their intervals, but within the range of outcomes. */
function commonScale(known, { lowest, highest }) {
  if (known.length === 0) return { low: lowest, high: highest };
  const low = Math.min(...known.map((arm) => arm.low));
  const high = Math.max(...known.map((arm) => arm.high));
  const room = Math.max(0.08 * (high - low), 0.01 * (highest - lowest));
  return { low: Math.min(low, Math.max(lowest, low - room)), high: Math.max(high, Math.min(highest, high + room)) };
}

function createEarning({ name }) {
  const cell = (label, part, testid) =>
    el("td", { "data-label": label }, el("span", { "data-part": part, "data-testid": testid && `${testid}-${name}` }));
  const whisker = svg(
    "svg",
    { class: "whisker", "aria-hidden": "true" },
    svg("line", { "data-part": "interval", y1: "50%", y2: "50%" }),
    svg("circle", { "data-part": "dot", cy: "50%", r: "6" }),
  );
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name, el("span", { class: "badge", "data-part": "retired", "data-state": "closed", hidden: "" }, "Retired")),
    el("td", { class: "picture" }, whisker),
    cell("Average so far", "mean", "mean"),
    cell("95% range", "range", "range"),
    cell("Chosen", "chosen", "chosen"),
    cell("Reports", "reports", "reports"),
    cell("Open", "open", "open"),
  );
}

function updateEarning(row, arm, outcome, { low, high }) {
  const isKnown = arm.mean !== null;
  const position = (value) => `${Math.max(0, Math.min(100, (100 * (value - low)) / (high - low)))}%`;
  row.classList.toggle("retired", !arm.active);
  part(row, "retired").hidden = arm.active;
  row.querySelector(".whisker").style.visibility = isKnown ? "visible" : "hidden";
  row.querySelector(".whisker").style.color = colour(arm.name);
  if (isKnown) {
    part(row, "interval").setAttribute("x1", position(arm.low));
    part(row, "interval").setAttribute("x2", position(arm.high));
    part(row, "dot").setAttribute("cx", position(meanOf(arm)));
  }
  write(part(row, "mean"), isKnown ? average(meanOf(arm), outcome) : "not yet known");
  write(part(row, "range"), isKnown ? `${average(arm.low, outcome)} to ${average(arm.high, outcome)}` : "–");
  write(part(row, "chosen"), arm.share === null ? count(arm.chosen) : `${count(arm.chosen)} (${percent(arm.share)})`);
  write(part(row, "reports"), count(arm.reports));
  write(part(row, "open"), count(arm.open));
}

/** The chart's text alternative. */
export function chartWords({ drawn }, { history }) {
  if (history.at.length < 2) return "The chart appears after the first decisions.";
  const now = drawn.map((arm) => `${arm.name} ${percent(arm.probability)}`).join(", ");
  return `The chart shows how likely each option was at ${plural(history.at.length, "moment")}. The last values are ${now}.`;
}
