// Changing an experiment: add or retire an option, close it. Each asks first, since none can be undone.

import { byId, el, write } from "/static/dom.js";
import { downloadWithKey, pathOf, post } from "/static/server.js";

let active = [];

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
    change(`Retire “${option}”? It will not be chosen any more. Outcomes still on their way count.`, "Retire option", "/arms", { add: [], retire: [option] });
  });
  onSubmit("close", () => {
    change(`Close “${name}”? It makes no more decisions. All data stays.`, "Close experiment", "/close", {});
  });
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

export function showManaging({ arms, closed_at: closed }) {
  byId("changes").hidden = closed !== null;
  byId("is-closed").hidden = closed === null;
  const names = arms.filter((arm) => arm.active).map((arm) => arm.name);
  byId("retire").hidden = names.length < 2; // something must remain to be chosen
  if (JSON.stringify(names) === JSON.stringify(active)) return; // an open list must not change under the reader
  active = names;
  byId("retire").elements.option.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
}

/** Ask; true if the answer is yes. */
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
