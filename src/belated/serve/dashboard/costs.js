// What learning has cost. Each number stands next to what it assumes.

import { byId, writeTo } from "/static/dom.js";
import { average, plural, roughly, total } from "/static/words.js";

export function showCosts({ costs, outcome, decisions, verdict }) {
  const hasOutcomes = verdict.open < decisions;
  writeTo("costs-words", decisions === 0 ? "This appears after the first decision." : meaning(decisions));
  byId("costs").hidden = decisions === 0;
  writeTo("known", hasOutcomes ? amount(costs.known, costs.most, roughly) : "–");
  writeTo("known-words", hasOutcomes ? knownWords(costs, decisions, outcome) : "Not known until the first outcome arrives.");
  writeTo("open-words", openWords(costs, verdict.open));
  writeTo("bound", amount(costs.bound, costs.most, total));
  writeTo("bound-words", limitWords(costs.bound, costs.most, decisions, outcome, BOUND));
  writeTo("proven", amount(costs.proven, costs.most, total));
  writeTo("proven-words", limitWords(costs.proven, costs.most, decisions, outcome, PROVEN));
}

const BOUND = "This experiment has cost at most this. That holds whenever you look, with 95% confidence, however late outcomes come.";
const PROVEN =
  "If you ran this experiment many times, it would cost at most this on average. That is a mathematical guarantee, however late outcomes come. It assumes that earlier choices do not change later outcomes.";

function meaning(decisions) {
  return `To learn, the experiment sometimes chooses an option that is not the best. This is what it has cost in total over ${plural(decisions, "decision")}, compared with always choosing the best option.`;
}

/** A number, unless nothing could cost more. */
function amount(value, most, format) {
  return value >= most ? "says nothing" : format(value);
}

function each(value, decisions, outcome) {
  return `That is ${average(value / decisions, outcome)} per decision.`;
}

function knownWords({ known, bound, most }, decisions, outcome) {
  if (known >= most) return nothing(most);
  const source = "It is estimated from the decisions whose outcome is known. The mean of such estimates over many experiments is not too low, but a single one may be.";
  const above = known > bound ? " Here it is probably too high, because it is above the limit for this experiment." : "";
  return known <= 0 ? `So far there is no sign of a loss. ${source}` : `${each(known, decisions, outcome)} ${source}${above}`;
}

function openWords({ open }, number) {
  return number === 0 ? "" : `${plural(number, "open decision", "open decisions")} could add up to ${total(open)}.`;
}

function limitWords(limit, most, decisions, outcome, meaning) {
  return limit >= most ? nothing(most) : `${each(limit, decisions, outcome)} ${meaning}`;
}

function nothing(most) {
  return `At most ${total(most)} could be lost at all, and this number is not below that.`;
}
