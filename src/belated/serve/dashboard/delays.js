// How late outcomes arrive, as histograms, tables and sentences.

import { byId, el, part, showEach, writeTo, write } from "/static/dom.js";
import { count, duration, madeOfParts, percent, plural, shortDuration, total } from "/static/words.js";

export function showDelays(experiment) {
  showHistogram("delays", experiment.delays, "outcome");
  showHistogram("ages", experiment.ages, "decision");
  writeTo("delays-words", delayWords(experiment.delays));
  writeTo("ages-words", ageWords(experiment.ages, experiment.outstanding));
  showNever(experiment);
}

/** How many decisions ended without a report. With a default outcome they still have one. */
function showNever({ reported, expired, late, reward_wait: wait, default_outcome: fallback, parts }) {
  const ended = reported + expired;
  byId("never").hidden = wait === null;
  writeTo("share-never", ended === 0 ? "Not known yet." : percent((expired - late) / ended));
  const silent = madeOfParts({ parts }) ? "ended with defaults for what was missing" : `ended without a report and count as ${total(fallback)}`;
  const what = fallback === null ? "never got an outcome" : silent;
  writeTo("share-never-words", ended === 0 ? "No decision has ended." : `of the finished decisions ${what}.`);
}

/** The bars from the first to the last that is not empty, with an empty one on each side. */
function filled({ edges, counts }) {
  const bars = counts.map((value, index) => ({ from: edges[index], to: edges[index + 1] ?? null, value }));
  const first = bars.findIndex((bar) => bar.value > 0);
  const last = bars.findLastIndex((bar) => bar.value > 0);
  return first < 0 ? [] : bars.slice(Math.max(0, first - 1), last + 2);
}

function between({ from, to }) {
  if (to === null) return `${shortDuration(from)} or more`;
  return from === 0 ? `under ${shortDuration(to)}` : `${shortDuration(from)} to ${shortDuration(to)}`;
}

function showHistogram(id, histogram, noun) {
  const bars = filled(histogram);
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  byId(`${id}-figure`).hidden = bars.length === 0;
  const every = Math.ceil(bars.length / 5); // room for about five labels on a phone
  showEach(byId(id), bars, (bar) => bar.from, createColumn, (column, bar, index) => {
    const isLabelled = index % every === 0;
    column.title = `${between(bar)}: ${plural(bar.value, noun)}`;
    part(column, "bar").style.height = `${(100 * bar.value) / most}%`;
    write(part(column, "label"), isLabelled ? shortDuration(bar.from) : "");
  });
  showEach(byId(`${id}-table`), bars, (bar) => bar.from, createLine, (line, bar) => {
    write(line.firstChild, between(bar));
    write(line.lastChild, count(bar.value));
  });
}

function createColumn() {
  const room = el("span", { class: "room" }, el("span", { class: "column", "data-part": "bar" }));
  return el("div", {}, room, el("span", { class: "label", "data-part": "label" }));
}

function createLine() {
  return el("tr", {}, el("th", { scope: "row" }), el("td"));
}

/** The end of the first bar by which this share had ended, or null if that is beyond the last bar. */
function waitOf({ edges, counts }, share) {
  const all = counts.reduce((sum, value) => sum + value, 0);
  let sum = 0;
  for (let index = 0; index < counts.length; index += 1) {
    sum += counts[index];
    if (sum >= share * all) return edges[index + 1] ?? null;
  }
  return null;
}

function delayWords(delays) {
  const all = delays.counts.reduce((sum, value) => sum + value, 0);
  if (all === 0) return "No outcome has arrived yet.";
  const [half, most] = [waitOf(delays, 0.5), waitOf(delays, 0.9)];
  const longest = duration(delays.edges.at(-1));
  if (half === null) return `More than half of the outcomes took over ${longest}.`;
  const rest = most === null ? `one in ten took over ${longest}` : `nine in ten within ${duration(most)}`;
  if (half === most) return `Nine in ten outcomes arrived within ${duration(half)}.`;
  return `Half of the outcomes arrived within ${duration(half)}, ${rest}.`;
}

function ageWords(ages, outstanding) {
  if (outstanding === 0) return "No decision is waiting for its outcome.";
  const half = waitOf(ages, 0.5);
  const open = `${plural(outstanding, "decision is", "decisions are")} waiting`;
  if (outstanding === 1) return half === null ? `${open}.` : `${open}, for less than ${duration(half)}.`;
  return half === null ? `${open}.` : `${open}, half of them for less than ${duration(half)}.`;
}
