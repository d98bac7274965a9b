// Change the options or close the experiment. Each change asks first.

import { byId, el, write } from "/static/dom.js";
import { prepareOperating, showOperating } from "/static/operate.js";
import { downloadWithKey, get, pathOf, post, prepareOtherKey } from "/static/server.js";

let active = [];
let current = null; // the experiment that is shown

export function prepareManaging(name, show) {
  const change = async (question, action, path, body, done = () => {}) => {
    write(byId("manage-error"), "");
    if (!(await confirms(question, action))) return;
    try {
      show(await post(pathOf(name) + path, body));
      done();
    } catch (error) {
      write(byId("manage-error"), error.message);
    }
  };
  onSubmit("add", (form) => {
    const option = form.elements.option.value.trim();
    change(`Add “${option}” to the options? From now on it can be chosen.`, "Add option", "/arms", { add: [option], retire: [] }, () => form.reset());
  });
  onSubmit("retire", (form) => {
    const option = form.elements.option.value;
    change(`Retire “${option}”? It will no longer be chosen. Outcomes that arrive later still count.`, "Retire option", "/arms", { add: [], retire: [option] });
  });
  onSubmit("close", () => {
    change(`Close “${name}”? It will refuse every request for a decision from then on. All data is kept. To show the winner to all, cancel and end the experiment instead.`, "Close experiment", "/close", {});
  });
  prepareOtherKey(byId("other-key"));
  prepareOperating(name, onSubmit, change);
  byId("management").addEventListener("toggle", () => byId("management").open && current?.rest?.active && offerAll());
  for (const kind of ["csv", "parquet"]) {
    const link = byId(`export-${kind}`);
    link.href = `${pathOf(name)}/export.${kind}`;
    link.download = `${name}.${kind}`;
    downloadWithKey(link);
  }
}

function onSubmit(id, act) {
  byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    act(event.target);
  });
}

export function showManaging(experiment) {
  const { arms, rest, closed_at: closed } = experiment;
  const hasChanged = current?.arm_changes !== experiment.arm_changes;
  current = experiment;
  byId("changes").hidden = closed !== null;
  byId("is-closed").hidden = closed === null;
  const names = arms.filter((arm) => arm.active).map((arm) => arm.name);
  byId("retire").hidden = names.length + (rest?.active ?? 0) < 2; // one option must remain
  showOperating(experiment, rest?.active && active.length > names.length ? active : names);
  if (!rest?.active) return offer(names);
  if (hasChanged && byId("management").open) offerAll();
}

function offer(names) {
  if (JSON.stringify(names) === JSON.stringify(active)) return; // do not change a list that is open
  active = names;
  showOperating(current, names);
  byId("retire").elements.option.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
}

/** The document of a large experiment lacks some options, so ask for all. */
async function offerAll() {
  const names = [];
  let cursor = "0";
  while (cursor !== null) {
    const page = await get(`${pathOf(current.name)}/arms?limit=1000&cursor=${cursor}`);
    names.push(...page.arms.filter((arm) => arm.active).map((arm) => arm.name));
    cursor = page.next;
  }
  offer(names);
}

/** Ask for confirmation. Resolves to true for yes. */
function confirms(question, action) {
  const dialog = byId("confirm");
  write(byId("question"), question);
  write(byId("yes"), action);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
