// What learning gains: the decisions of the learner against those that were held out.

import { byId, writeTo } from "/static/dom.js";
import { average, percent, plural, shortened, total } from "/static/words.js";

export function showGain({ holdout, outcome, default_outcome: fallback, shown }) {
  byId("gain").hidden = !holdout;
  if (!holdout) return;
  writeTo("gain-groups", groupsWords(holdout, fallback, shown !== null));
  writeTo("gain", holdout.gain === null ? "–" : signed(holdout.gain, outcome));
  writeTo("gain-words", gainWords(holdout, outcome));
  writeTo("gain-learner", holdout.learner === null ? "–" : average(holdout.learner, outcome));
  writeTo("gain-held-out", holdout.held_out === null ? "–" : average(holdout.held_out, outcome));
}

function groupsWords({ share, control, decisions, open }, fallback, isOver) {
  const shows = control === null ? "show all options alike" : `always show ${shortened(control)}`;
  const count = fallback === null ? "do not count in the averages" : `count as ${total(fallback)} in the averages and in the gain`;
  const waiting = open ? ` ${plural(open, "is", "are")} still open. Open decisions ${count}.` : "";
  const held = isOver ? `Before all decisions showed one option, ${percent(share)} of them were held out.` : `${percent(share)} of the decisions, drawn by chance, are held out. They ${shows}, whatever was learned.`;
  return `${held} ${plural(decisions, "decision")} of both kinds were compared so far.${waiting}`;
}

const signed = (value, outcome) => {
  const words = average(value, outcome);
  return value > 0 && Number(words.replaceAll(",", "")) > 0 ? `+${words}` : words;
};

function gainWords({ gain, low, high }, outcome) {
  if (gain === null) return "Not known until outcomes of both kinds arrive.";
  const range = `With 95% confidence it is between ${signed(low, outcome)} and ${signed(high, outcome)}, whenever you look.`;
  const sure = low > 0 ? "Learning is better than the holdout." : high < 0 ? "Learning is worse than the holdout." : "It may still be chance.";
  return `${range} ${sure} Above 0 means that learning is better. In this range open decisions count at their worst.`;
}
