// Which option is better, how sure that is, what is open, and what to do. Pure functions, except showVerdict.

import { byId, writeTo } from "/static/dom.js";
import { average, count, listed, plural, shortened } from "/static/words.js";

const NAMED = 3; // options in one sentence

export function showVerdict(experiment) {
  writeTo("headline", headline(experiment));
  writeTo("sure", [sureWords(experiment), openWords(experiment)].filter(Boolean).join(" "));
  const next = nextWords(experiment);
  writeTo("next", next);
  byId("next").hidden = next === "";
  const caveat = caveatWords(experiment);
  writeTo("caveat", caveat);
  byId("caveat").hidden = caveat === "";
  byId("judging").hidden = experiment.verdict.leader === null;
  writeTo("judging-sure", meaning(experiment));
  writeTo("judging-rest", rest(experiment));
  writeTo("judging-assumed", `This is assumed. ${experiment.verdict.assumption}`);
}

const activeOf = ({ arms }) => arms.filter((arm) => arm.active);
const activeCount = (experiment) => activeOf(experiment).length + (experiment.rest?.active ?? 0);

/** Which option is better. */
export function headline(experiment) {
  const { verdict, decisions, closed_at: closed } = experiment;
  const active = activeOf(experiment);
  if (decisions === 0) return closed ? "Closed before the first decision." : "Ready for the first decision.";
  if (activeCount(experiment) === 1) return `${shortened(active[0].name)} is the only option.`;
  if (verdict.leader === null) return "No outcome is known yet.";
  if (!verdict.decided) return closed ? "No option is known to be better." : "No option is known to be better yet.";
  const others = active.filter((arm) => arm.name !== verdict.better).map((arm) => shortened(arm.name));
  const number = activeCount(experiment) - 1;
  const than = number > NAMED ? `all ${count(number)} other options` : listed(others);
  return `${shortened(verdict.better)} is better than ${than}.`;
}

/** Rounded down, because 95% must not be shown before it is reached. */
export function sureness(sure) {
  const digits = sure >= 0.99 ? 1 : 0;
  const steps = 10 ** digits;
  return `${Math.min(99.9, Math.floor(sure * 100 * steps + 1e-9) / steps).toFixed(digits)}%`;
}

const isSome = (sure) => sure >= 0.01;

/** How sure it is that the leader is better. */
function sureWords(experiment) {
  const { verdict, decisions, closed_at: closed } = experiment;
  if (decisions === 0) return closed ? "" : "Every option is equally likely until outcomes arrive.";
  if (activeCount(experiment) === 1) return "There is nothing to compare it with.";
  if (verdict.leader === null) return "Options are compared as soon as outcomes arrive.";
  if (verdict.decided) return `${sureness(verdict.sure)} sure, whenever you look. ${differenceWords(experiment)}`;
  const lead = `${shortened(verdict.leader)} leads`;
  return isSome(verdict.sure) ? `${lead} (${sureness(verdict.sure)} sure).` : `${lead}, but that may be chance.`;
}

/** The option that is the hardest to tell from the leader. */
const closest = ({ comparisons }) => comparisons.reduce((a, b) => (b.sure < a.sure || (b.sure === a.sure && b.low < a.low) ? b : a));

/** By how much the winner is better. */
function differenceWords({ verdict, outcome }) {
  const { name, difference, low, high } = closest(verdict);
  return `Its average is better than that of ${shortened(name)} by ${average(difference, outcome)} (between ${average(Math.max(0, low), outcome)} and ${average(high, outcome)}).`;
}

/** What is still open. */
function openWords({ verdict, decisions }) {
  if (decisions === 0 || verdict.leader === null) return "";
  if (verdict.open === 0) return "No decision is open.";
  return `${plural(verdict.open, "decision is", "decisions are")} still open. What is said here counts ${verdict.open === 1 ? "it at its" : "them at their"} worst.`;
}

/** What to do while it is not known which option is better. */
function goOnWords({ verdict, arms }) {
  if (verdict.leader === null || verdict.comparisons.length === 0) return "";
  const leader = shortened(verdict.leader);
  const { name } = closest(verdict);
  const { chosen } = arms.find((arm) => arm.name === name);
  return `It is too early to stop. ${shortened(name)} was chosen ${plural(chosen, "time")} so far, and ${leader} is not known to be better than it. If you have to stop, show ${leader}.`;
}

/** What to do. */
function nextWords(experiment) {
  const { verdict, show, closed_at: closed } = experiment;
  if (closed === null) return verdict.decided ? `You may stop now. Under Manage, end the experiment with ${shortened(verdict.better)} as the winner. Then every decision shows it.` : goOnWords(experiment);
  if (show === null) return "";
  const name = shortened(show.name);
  if (show.decided || verdict.leader === null) return `From now on show ${name}.`;
  return `From now on show ${name}. It has the best average, but it is not known to be better.`;
}

/** What to know about missing reports. The open decisions are counted at their worst, so the verdict holds. */
function caveatWords({ verdict, reporting }) {
  const silent = (reporting?.arms ?? []).filter((arm) => arm.warning);
  if (silent.length === 0 || verdict.leader === null) return "";
  const whose = silent.length === 1 ? shortened(silent[0].name) : plural(silent.length, "option");
  const holds = "Decisions without a report count at their worst, so what is said here still holds.";
  return `Reports of ${whose} are missing. ${holds} But the averages below may be wrong.`;
}

/** What "97% sure" means. It is 1 - p, and not a probability that the leader is better. */
function meaning({ verdict }) {
  if (verdict.leader === null) return "";
  const name = shortened(verdict.leader);
  if (!isSome(verdict.sure)) return `An option that is not better could lead like this by chance. As outcomes arrive, the page says how sure it is that ${name} is better.`;
  const of = verdict.sure >= 0.99 ? 1000 : 100;
  const wrong = Math.max(1, of - Math.floor(verdict.sure * of + 1e-9));
  return `Suppose that another option is at least as good as ${name} at all times. Then ${sureness(verdict.sure)} or more would ever be shown for it in at most ${wrong} of ${count(of)} such experiments, no matter how often somebody looks. This is not the chance that ${name} is better.`;
}

function rest({ verdict }) {
  const late = verdict.stale ? ` ${plural(verdict.stale, "decision was", "decisions were")} left out, because another server drew ${verdict.stale === 1 ? "it" : "them"} from older data.` : "";
  const moved = verdict.left_out - verdict.stale;
  const paused = moved ? ` ${plural(moved, "decision was", "decisions were")} left out, because the probabilities had just changed.` : "";
  return `At 95% it counts as known. An open decision counts as the worst outcome if it chose the leader, and as the best if it chose another option.${late}${paused}`;
}
