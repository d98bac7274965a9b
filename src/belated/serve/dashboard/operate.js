// The forms that pause, freeze, end and edit the experiment.

import { byId, el, write } from "/static/dom.js";
import { defaultChecks, isFine, numberIn, shareChecks } from "/static/fields.js";
import { plural } from "/static/words.js";

const BEST = ""; // the value of "the best so far"
let edited = null; // the settings that the form shows
let shown = null; // the experiment, for the limits of its settings
let compared = 0; // decisions in the comparison of what learning gains

export function prepareOperating(name, onSubmit, change) {
  onSubmit("pause", (form) => {
    if (form.dataset.state === "paused") return change(`Resume “${name}”? It makes decisions again.`, "Resume", "/resume", {});
    return change(`Pause “${name}”? Requests for decisions are refused until you resume it. Outcomes are still taken.`, "Pause", "/pause", {});
  });
  onSubmit("freeze", (form) => {
    const option = form.elements.option.value;
    change(`Freeze “${name}”? Every decision shows ${named(option)}, and nothing is learned from it.`, "Freeze", "/freeze", option === BEST ? {} : { arm: option });
  });
  onSubmit("unfreeze", () => change(`Unfreeze “${name}”? It goes on with learning where it was.`, "Unfreeze", "/unfreeze", {}));
  onSubmit("end", (form) => {
    const option = form.elements.option.value;
    change(`End “${name}”? From then on every decision shows ${named(option)}. This cannot be undone.`, "End experiment", "/end", option === BEST ? {} : { winner: option });
  });
  onSubmit("edit", (form) => {
    if (!isFine(form, checksOf(form))) return;
    const body = changes(form);
    if (Object.keys(body).length === 0) return write(byId("manage-error"), "Nothing has changed.");
    change(`Change the settings of “${name}”? The change holds from the next decision on.${droppedWords(body)}`, "Save settings", "/edit", body);
  });
}

/** What is lost with the old groups. A change of the holdout or its control begins the comparison anew. */
function droppedWords({ holdout, control }) {
  if (compared === 0 || (holdout === undefined && control === undefined)) return "";
  const what = holdout === 0 ? "ends" : "begins anew";
  return ` The comparison of what learning gains ${what}: ${plural(compared, "decision")} that it has so far will no longer count in it. What was learned stays.`;
}

const named = (option) => (option === BEST ? "the option that is the best so far" : `“${option}”`);

export function showOperating(experiment, names) {
  const { state, closed_at: closed } = experiment;
  shown = experiment;
  compared = experiment.holdout?.decisions ?? 0;
  const pause = byId("pause");
  pause.dataset.state = state;
  write(byId("pause-button"), state === "paused" ? "Resume" : "Pause");
  write(pause.querySelector("label"), state === "paused" ? "Go on" : "Stop for a while");
  byId("freeze").hidden = state === "frozen" || state === "paused";
  byId("unfreeze").hidden = state !== "frozen";
  byId("end").hidden = state === "ended";
  byId("edit").hidden = closed !== null;
  for (const id of ["freeze-name", "end-name"]) offer(byId(id), "the best so far", names);
  offer(byId("edit-control"), "all options alike", names);
  showSettings(experiment);
}

function offer(select, first, names) {
  const wanted = JSON.stringify([first, ...names]);
  if (select.dataset.offers === wanted) return; // do not change a list that is open
  const chosen = select.value;
  select.dataset.offers = wanted;
  select.replaceChildren(el("option", { value: BEST }, first), ...names.map((name) => el("option", { value: name }, name)));
  if (names.includes(chosen)) select.value = chosen;
}

/** The settings as the API has them. */
function settingsOf({ description, reward_wait, default_outcome, floor, holdout }) {
  return { description, reward_wait, default_outcome, floor, holdout: holdout?.share ?? 0, control: holdout?.control ?? null };
}

/** Fill in the form, unless somebody is writing in it and the settings are the same. */
function showSettings(experiment) {
  const settings = settingsOf(experiment);
  if (JSON.stringify(settings) === JSON.stringify(edited)) return;
  edited = settings;
  const { elements } = byId("edit");
  const unit = [86400, 3600, 60, 1].find((size) => settings.reward_wait !== null && settings.reward_wait % size === 0) ?? 1;
  elements.description.value = settings.description;
  elements.unit.value = String(unit);
  elements.wait.value = settings.reward_wait === null ? "" : String(settings.reward_wait / unit);
  elements.default_outcome.value = settings.default_outcome ?? "";
  elements.default_outcome.disabled = Object.keys(experiment.parts).length > 0; // each part has a default of its own
  elements.floor.value = settings.floor ? String(Number((settings.floor * 100).toFixed(6))) : "";
  elements.holdout.value = settings.holdout ? String(Number((settings.holdout * 100).toFixed(6))) : "";
  elements.control.value = settings.control ?? BEST;
}

/** What the server would refuse, before it is asked. */
function checksOf({ elements }) {
  const { arms, rest, outcome, parts } = shown;
  const isTaken = edited.default_outcome !== null && numberIn(elements.default_outcome) === null;
  const ofDefault = [[elements.default_outcome, isTaken, "It cannot be taken away while the experiment runs. Give another outcome."], ...defaultChecks(elements, outcome)];
  const isNamed = elements.control.value !== BEST && elements.control.value !== edited.control;
  const options = arms.filter((arm) => arm.active).length + (rest?.active ?? 0);
  return [...(Object.keys(parts).length > 0 ? [] : ofDefault), ...shareChecks(elements, options, isNamed)];
}

/** What differs between the form and the settings. */
function changes(form) {
  const { elements } = form;
  const number = (field) => numberIn(elements[field]);
  const wait = number("wait");
  const said = {
    description: elements.description.value.trim(),
    reward_wait: wait === null ? null : wait * Number(elements.unit.value),
    default_outcome: number("default_outcome"),
    floor: (number("floor") ?? 0) / 100,
    holdout: (number("holdout") ?? 0) / 100,
    control: elements.control.value === BEST ? null : elements.control.value,
  };
  if (said.holdout === 0) said.control = null; // without a holdout there is nothing to show
  return Object.fromEntries(Object.entries(said).filter(([name, value]) => value !== edited[name]));
}
