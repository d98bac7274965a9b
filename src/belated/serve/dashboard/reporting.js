// A warning on top of the page if options report at different rates.

import { byId, writeTo } from "/static/dom.js";
import { count, duration, percent, plural, shortened } from "/static/words.js";

const NAMED = 3; // options in one sentence

export function showReporting({ reporting, reward_wait: wait }) {
  const silent = (reporting?.arms ?? []).filter((arm) => arm.warning).sort((a, b) => b.less - a.less);
  byId("missing").hidden = silent.length === 0;
  if (silent.length === 0) return;
  writeTo("missing-words", verdict(silent));
  writeTo("missing-numbers", numbers(silent, reporting.judged_after));
  writeTo("missing-repair", repair(wait));
}

function verdict(silent) {
  const parts = silent.slice(0, NAMED).map(rate);
  if (silent.length > NAMED) parts.push(plural(silent.length - NAMED, "more option does", "more options do"));
  const said = parts.length === 1 ? parts[0] : `${parts.slice(0, -1).join(", ")}, and ${parts.at(-1)}`;
  return `${said}: ${silent.length === 1 ? "its" : "their"} failures may be missing.`;
}

function rate({ name, reports, less }) {
  if (reports === 0) return `${shortened(name)} has never reported, though the others have`;
  return `${shortened(name)} reports ${percent(less)} less often than the others`;
}

function numbers(silent, age) {
  const [{ name, decisions, reports }] = silent;
  const seen = `Of ${plural(decisions, "decision")} for ${shortened(name)} that ${decisions === 1 ? "is" : "are"} at least ${duration(age)} old, ${count(reports)} got an outcome.`;
  return `${seen} This is hardly chance. So the averages below, and what is chosen, may be wrong.`;
}

function repair(wait) {
  const check = "Check that your system reports every outcome, failures too. You can still send those that are missing.";
  return wait === null ? `${check} If they are only slow, this message goes away when they arrive.` : check;
}
