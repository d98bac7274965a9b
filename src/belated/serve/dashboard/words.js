// Turns numbers into plain words. Pure functions that touch neither the page nor the server.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FOUR_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const THREE_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const MOMENT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const TIME = new Intl.DateTimeFormat("en", { timeStyle: "medium" });

export const count = (value) => WHOLE.format(value);
export const moment = (iso) => MOMENT.format(new Date(iso));
export const timeOfDay = (date) => TIME.format(date);

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
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
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

/** The settings of an experiment's outcomes, in a few sentences. */
export function rules({ outcome, reward_wait: wait, default_outcome: fallback, provisional }) {
  const range = `Outcomes lie between ${total(outcome.lowest)} and ${total(outcome.highest)}, and ${outcome.better} is better.`;
  if (wait === null) return `${range} There is no limit on the wait for an outcome.`;
  const waits = `${range} Each decision waits ${duration(wait)} for its outcome.`;
  if (fallback === null) return `${waits} After that, the decision ends without one.`;
  return `${waits} ${provisional ? "Until it comes" : "After that"}, a missing outcome counts as ${total(fallback)}.`;
}

/** The option that is chosen most, or null if none stands out. */
function favourite(arms) {
  const active = arms.filter((arm) => arm.probability !== null).sort((a, b) => b.probability - a.probability);
  return active.length === 1 || active[0]?.probability >= 1.5 / active.length ? active[0] : null;
}

/** What is chosen, as the headline of the page. */
export function headline({ arms, decisions, closed_at: closed }) {
  const first = favourite(arms);
  if (decisions === 0) return closed ? "Closed before the first decision." : "Ready for the first decision.";
  if (!first) return closed ? "There was no clear favourite." : "No clear favourite yet.";
  const share = percent(first.probability);
  if (closed) return `${shortened(first.name)} was the favourite, chosen ${share} of the time at the end.`;
  return `${shortened(first.name)} is the favourite, chosen ${share} of the time.`;
}

/** Which option earned the most, and whether that may be chance. */
export function leader({ arms, outcome, decisions, reporting, closed_at: closed }) {
  if (decisions === 0 && closed) return "It made no decision.";
  if (decisions === 0) return "Every option is equally likely until outcomes arrive.";
  const sign = outcome.better === "higher" ? 1 : -1;
  const known = arms.filter((arm) => arm.estimate !== null && arm.active).sort((a, b) => sign * (b.estimate - a.estimate));
  if (known.length === 0) return "Too few outcomes have arrived to compare the options.";
  const silent = (reporting?.arms ?? []).filter((arm) => arm.warning);
  const whose = silent.length === 1 ? shortened(silent[0].name) : plural(silent.length, "option");
  if (silent.length > 0) return `The averages cannot be compared while reports of ${whose} are missing.`;
  const [best, ...others] = known;
  const who = best.name === favourite(arms)?.name ? "It also" : shortened(best.name);
  const what = `${who} ${closed ? "had the best average outcome" : "has the best average outcome so far"}, ${average(best.estimate, outcome)}`;
  if (others.length === 0) return `${what}.`;
  const apart = others.every((arm) => (sign > 0 ? best.low > arm.high : best.high < arm.low));
  return apart ? `${what}. Its likely range does not overlap any other.` : `${what}. The lead may ${closed ? "" : "still "}be chance.`;
}

/** How many outcomes came late or were corrected. */
export function afterthoughts({ late, amended }) {
  const parts = [];
  if (late) parts.push(`${plural(late, "outcome")} arrived after the wait and still counted.`);
  if (amended) parts.push(`${plural(amended, "outcome was", "outcomes were")} corrected later.`);
  return parts.join(" ");
}
