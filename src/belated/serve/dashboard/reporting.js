// A warning on top of the page if options report at different rates.

import { byId, writeTo } from "/static/dom.js";
import { count, duration, percent, plural, shortened } from "/static/words.js";

const NAMED = 3; // options in one sentence

export function showReporting({ arms, reporting, tuning }) {
  const silent = (reporting?.arms ?? []).filter((arm) => arm.warning).sort((a, b) => b.less - a.less);
  byId("missing").hidden = silent.length === 0;
  if (silent.length === 0) return;
  const never = new Set(arms.filter((arm) => arm.reports === 0).map((arm) => arm.name));
  writeTo("missing-words", verdict(silent, never));
  writeTo("missing-numbers", numbers(silent, reporting.judged_after, tuning));
}

function verdict(silent, never) {
  const parts = silent.slice(0, NAMED).map((arm) => rate(arm, never.has(arm.name)));
  if (silent.length > NAMED) parts.push(plural(silent.length - NAMED, "more option reports less often", "more options report less often"));
  const said = parts.length === 1 ? parts[0] : `${parts.slice(0, -1).join(", ")}, and ${parts.at(-1)}`;
  return `${said}: ${silent.length === 1 ? "its" : "their"} failures may be missing.`;
}

function rate({ name, less }, isSilent) {
  if (isSilent) return `${shortened(name)} has never reported, though the others have`;
  return `${shortened(name)} reports ${percent(less)} less often than the others`;
}

function numbers(silent, age, tuning) {
  const [{ name, decisions, reports }] = silent;
  const seen = `Of ${plural(decisions, "decision")} for ${shortened(name)} that could be judged, ${count(reports)} got an outcome.`;
  const effect = tuning.name === "means" ? "" : " A missing report counts as a perfect outcome, so what reports less is chosen too often.";
  return `${seen} This is hardly chance.${effect} The averages below may be wrong. A decision is judged after ${duration(age)} at the earliest.`;
}
