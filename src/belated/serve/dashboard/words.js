// Turns numbers into plain words. Pure functions that touch neither the page nor the server.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FOUR_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const THREE_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const MOMENT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat("en", { timeStyle: "short" });
const TIME = new Intl.DateTimeFormat("en", { timeStyle: "medium" });

export const count = (value) => WHOLE.format(value);
export const moment = (iso) => MOMENT.format(new Date(iso));
export const timeOfDay = (date) => TIME.format(date);

/** Moments along an axis, in seconds. A new day is named once. */
export function axisWords(moments, step) {
  const dates = moments.map((moment) => new Date(moment * 1000));
  const days = dates.map((date) => DAY.format(date));
  if (step >= 86400) return days;
  const clock = step < 60 ? TIME : CLOCK;
  return dates.map((date, index) => (days[index] === days[index - 1] ? clock.format(date) : `${clock.format(date)}\n${days[index]}`));
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(share) {
  if (share <= 0) return "0%";
  if (share < 0.001) return "< 0.1%";
  if (share < 1 && share > 0.995) return `${Math.min(99.9, share * 100).toFixed(1)}%`; // 100% would mean "always"
  return share < 0.0995 ? `${Number((share * 100).toFixed(1))}%` : `${Math.round(share * 100)}%`;
}

/** A sum of outcomes, or any number that needs no more than four digits. */
export function total(value) {
  return Math.abs(value) < 1000 ? FOUR_DIGITS.format(value) : WHOLE.format(value);
}

/** The same for a number that is only an estimate. */
export function roughly(value) {
  return Math.abs(value) < 1000 ? THREE_DIGITS.format(value) : WHOLE.format(value);
}

/** An average outcome, to a thousandth of the range. */
export function average(value, outcome) {
  const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(outcome.highest - outcome.lowest) + 1e-9)));
  const rounded = Number(value.toFixed(digits)) + 0; // -0 becomes 0
  return rounded.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const UNITS = [
  [86400, "day", "d"],
  [3600, "hour", "h"],
  [60, "minute", "min"],
  [1, "second", "s"],
];

function inUnits(seconds) {
  const unit = UNITS.find(([size]) => seconds >= size) ?? UNITS[3];
  return [Number((seconds / unit[0]).toFixed(seconds < 1 ? 2 : 1)), unit];
}

export function duration(seconds) {
  const [value, [, name]] = inUnits(seconds);
  return `${value} ${name}${value === 1 ? "" : "s"}`;
}

export function shortDuration(seconds) {
  const [value, [, , name]] = inUnits(seconds);
  return value === 0 ? "0" : `${value} ${name}`;
}

export function bytes(size) {
  const names = ["bytes", "KB", "MB", "GB", "TB"];
  const power = Math.min(names.length - 1, Math.floor(Math.log10(Math.max(size, 1)) / 3));
  return `${Number((size / 1000 ** power).toFixed(power ? 1 : 0))} ${names[power]}`;
}

export function shortened(name, length = 40) {
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}

/** Names as they are said: a, b and c. */
export function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

const TUNINGS = {
  means: "Means, the default",
  shadow: "Shadow, the default of earlier releases",
  advanced: "Advanced, with the strongest proven limit",
  simple: "Simple, the simpler published rule",
  tsallis: "Tsallis, for outcomes without delay",
  adaptive_exp3: "Adaptive Exp3, an older published rule",
};

export function tuning(name) {
  return TUNINGS[name] ?? name;
}

const SEVERAL = { first: "the first", last: "the last", sum: "the sum", mean: "the mean" };

/** The settings of an experiment's outcomes, in a few sentences. */
export function rules({ outcome, reward_wait: wait, default_outcome: fallback, provisional, several, parts }) {
  const names = Object.keys(parts ?? {});
  const made = names.length > 0 ? `An outcome is made of ${listed(names)}. ` : "";
  const limits = `${made}Outcomes lie between ${total(outcome.lowest)} and ${total(outcome.highest)}, and ${outcome.better} is better.`;
  const range = several === null ? limits : `${limits} Of several outcomes of a decision, ${SEVERAL[several]} counts.`;
  if (wait === null) return `${range} There is no limit on the wait for an outcome.`;
  const waits = `${range} Each decision waits ${duration(wait)} for its outcome.`;
  if (fallback === null) return `${waits} After that, the decision ends without one.`;
  if (names.length > 0) return `${waits} ${provisional ? `Until its wait ends or all parts have come, it counts as ${total(fallback)}. ` : ""}When the wait ends, missing parts count as their defaults.`;
  return `${waits} ${provisional ? "Until it comes" : "After that"}, a missing outcome counts as ${total(fallback)}.`;
}

const STATES = { running: "Running", paused: "Paused", frozen: "Frozen", ended: "Ended", closed: "Closed", failed: "Failed" };

export const stateWord = (state) => STATES[state] ?? state;

/** What is mixed into the probabilities, in a few sentences. Nothing if every decision shows one option. */
export function mixWords({ floor, holdout, shown }) {
  if (shown !== null) return "";
  const parts = [];
  if (floor) parts.push(`Every option is shown in at least ${percent(floor)} of the decisions.`);
  if (holdout) parts.push(`${percent(holdout.share)} of the decisions are held out.`);
  return parts.join(" ");
}

/** The option that the next decision prefers, or null if none stands out. */
function favourite({ arms, rest }) {
  const active = arms.filter((arm) => arm.probability !== null).sort((a, b) => b.probability - a.probability);
  const number = active.length + (rest?.active ?? 0);
  return number === 1 || active[0]?.probability >= 1.5 / number ? active[0] : null;
}

/** How often the favourite was chosen, and how likely it is chosen next. These are two facts. */
export function favouriteWords(experiment) {
  const { decisions, closed_at: closed, state, shown } = experiment;
  if (shown !== null) return `Every decision shows ${shortened(shown)} now.`;
  if (state === "paused") return "No decisions are made now. Below is what comes after the pause.";
  const first = favourite(experiment);
  if (decisions === 0) return "";
  if (!first) return closed ? "No option was clearly preferred." : "No option is clearly preferred yet.";
  const isLater = Math.abs(first.share * decisions - first.chosen) > 0.5; // it joined later, or was away
  const all = isLater ? "the decisions that it took part in" : "all decisions";
  const now = closed ? "One more decision would choose it" : "The next decision chooses it";
  return `${shortened(first.name)} was chosen in ${percent(first.share)} of ${all}. ${now} with probability ${percent(first.probability)}.`;
}

/** Whether outcomes are made of parts. Those that have come count, also if others are missing. */
export const madeOfParts = ({ parts }) => Object.keys(parts ?? {}).length > 0;

/** How many outcomes came late or were corrected. */
export function afterthoughts({ late, amended }) {
  const parts = [];
  if (late) parts.push(`${plural(late, "outcome")} arrived after the wait and still counted.`);
  if (amended) parts.push(`${plural(amended, "outcome was", "outcomes were")} corrected later.`);
  return parts.join(" ");
}
