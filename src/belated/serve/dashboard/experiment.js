// The page of one experiment, updated live.

import { showArchive } from "/static/archive.js";
import { chartWords, drawnArms, showEarnings, showProbabilities } from "/static/arms.js";
import { showHistory } from "/static/charts.js";
import { prepareCopying, showCommands } from "/static/commands.js";
import { showDelays } from "/static/delays.js";
import { showCosts } from "/static/costs.js";
import { byId, writeTo, write } from "/static/dom.js";
import { follow } from "/static/live.js";
import { showGain } from "/static/gain.js";
import { prepareManaging, showManaging } from "/static/manage.js";
import { showEvents, showOperation } from "/static/operation.js";
import { showParts } from "/static/parts.js";
import { showReporting } from "/static/reporting.js";
import { pathOf } from "/static/server.js";
import { showStore } from "/static/store.js";
import { showVerdict } from "/static/verdict.js";
import { afterthoughts, count, favouriteWords, madeOfParts, mixWords, moment, plural, rules, stateWord, total, tuning } from "/static/words.js";

const name = decodeURIComponent(location.pathname.split("/")[2]);

function show(experiment) {
  if (experiment.failure !== null) return showFailure(experiment.failure);
  byId("content").hidden = false;
  const learned = { ...experiment, decisions: experiment.decisions - (experiment.aside?.decisions ?? 0) };
  showReporting(experiment);
  showVerdict(learned);
  showOperation(experiment);
  showGain(experiment);
  showSummary(experiment);
  showArchive(experiment);
  const drawing = drawnArms(experiment);
  const isClosed = experiment.closed_at !== null;
  const isSilent = isClosed && experiment.state !== "ended"; // it decides no more
  write(byId("chosen-title"), isSilent ? "What learning would choose" : "What is chosen now");
  write(byId("bars-title"), isSilent ? "If it made one more decision" : "For the next decision");
  writeTo("favourite", favouriteWords(learned));
  byId("deciding").hidden = isSilent;
  showProbabilities(drawing);
  showHistory(drawing, experiment);
  write(byId("history-words"), chartWords(drawing, experiment));
  showEarnings(experiment);
  showParts(experiment);
  showDelays(experiment);
  showCosts(learned);
  showStore(experiment);
  showCommands(experiment);
  showManaging(experiment);
  showEvents(experiment);
}

function showSummary(experiment) {
  const { decisions, outstanding, closed_at: closed } = experiment;
  const known = experiment.reported + experiment.late; // a late outcome is known, too
  const fallback = experiment.default_outcome;
  const silent = experiment.expired - experiment.late;
  const ended = silent + (fallback === null ? experiment.removed : 0); // no outcome is assumed of what left the store
  const state = document.querySelector('[data-testid="state"]');
  state.hidden = false;
  state.dataset.state = experiment.state;
  write(state, stateWord(experiment.state));
  writeTo("decisions", count(decisions));
  writeTo("outstanding", count(outstanding));
  writeTo("reported", count(known));
  writeTo("expired", count(ended));
  writeTo("expired-label", expiredLabel(experiment));
  writeTo("afterthoughts", afterthoughts(experiment));
  for (const [id, value] of [["share-reported", known], ["share-outstanding", outstanding], ["share-expired", silent + experiment.removed]]) {
    byId(id).style.flexGrow = value;
  }
  byId("shares").hidden = decisions === 0;
  const end = experiment.state === "ended" ? "ended" : "closed";
  const started = `Started ${moment(experiment.created_at)}${closed === null ? "" : `, ${end} ${moment(closed)}`}.`;
  const changed = experiment.arm_changes;
  const changes = changed ? ` Options were changed ${changed === 1 ? "once" : plural(changed, "time")}.` : "";
  writeTo("about", `${started} ${rules(experiment)}${changes} It learns with ${tuning(experiment.tuning.name)}. ${mixWords(experiment)}`.trim());
  writeTo("description", experiment.description);
}

function expiredLabel({ default_outcome: fallback, parts }) {
  if (fallback === null) return "Ended without an outcome";
  return madeOfParts({ parts }) ? "Ended with defaults for what was missing" : `No report, counts as ${total(fallback)}`;
}

function showFailure(failure) {
  for (const id of ["content", "operation", "missing", "next", "caveat", "judging"]) byId(id).hidden = true;
  const state = document.querySelector('[data-testid="state"]');
  state.hidden = false;
  state.dataset.state = "failed";
  write(state, "Failed");
  writeTo("headline", "This experiment has failed.");
  writeTo("sure", `${failure} It makes no decisions and takes no reports. Its decisions can still be exported. All other experiments go on.`);
}

function fail(problem) {
  byId("content").hidden = true;
  byId("missing").hidden = true;
  byId("connection").hidden = true;
  writeTo("headline", problem.status === 404 ? "There is no such experiment." : "This experiment cannot be shown.");
  writeTo("sure", problem.message);
}

document.title = `${name} · Belated`;
writeTo("name", name);
prepareCopying();
prepareManaging(name, show);
follow(`${pathOf(name)}/live`, show, fail);
