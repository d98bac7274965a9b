// The form that creates an experiment.

import { byId, el, write } from "/static/dom.js";
import { addPart, partsIn } from "/static/new-parts.js";
import { post, prepareOtherKey } from "/static/server.js";

export function prepareForm() {
  const form = byId("create");
  prepareOtherKey(byId("other-key"));
  byId("add-option").addEventListener("click", () => addOption().focus());
  byId("add-part").addEventListener("click", () => addPart().focus());
  addOption();
  addOption();
  byId("control").addEventListener("focus", () => offerControls(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    create(form);
  });
}

function addOption() {
  const number = byId("options").children.length + 1;
  const label = `Option ${number}`;
  const examples = ["e.g. blue", "e.g. green"];
  const field = el("input", { name: "arm", "aria-label": label, placeholder: examples[number - 1] ?? "", autocomplete: "off" });
  if (number <= 2) field.required = true;
  byId("options").append(field);
  return field;
}

/** Offer the options that were named so far. */
function offerControls(form) {
  const select = byId("control");
  const chosen = select.value;
  select.replaceChildren(select.options[0], ...namesIn(new FormData(form)).map((name) => el("option", { value: name }, name)));
  select.value = chosen;
}

const namesIn = (said) => said.getAll("arm").map((arm) => arm.trim()).filter((arm) => arm !== "");

function numberOrNull(text) {
  return text.trim() === "" ? null : Number(text);
}

/** What is said of outcomes that are one number. */
function outcomeIn(said) {
  return {
    outcome: { lowest: Number(said.get("lowest")), highest: Number(said.get("highest")), better: said.get("better") },
    default_outcome: numberOrNull(said.get("default_outcome")),
    ...(said.get("several") === "" ? {} : { several: said.get("several") }),
  };
}

/** The form as the API takes it. */
function described(form) {
  const said = new FormData(form);
  const wait = numberOrNull(said.get("wait"));
  return {
    name: said.get("name").trim(),
    arms: namesIn(said),
    ...(partsIn() ?? outcomeIn(said)),
    tuning: { name: said.get("tuning") },
    reward_wait: wait === null ? null : wait * Number(said.get("unit")),
    ...(said.get("description").trim() && { description: said.get("description").trim() }),
    ...(said.get("floor") && { floor: Number(said.get("floor")) / 100 }),
    ...(said.get("holdout") && { holdout: Number(said.get("holdout")) / 100 }),
    ...(said.get("control") && { control: said.get("control") }),
  };
}

async function create(form) {
  const button = form.querySelector("button.primary");
  write(byId("create-error"), "");
  button.disabled = true; // so that a second click does not send it again
  try {
    const { name } = await post("/v1/experiments", described(form));
    location.assign(`/experiments/${encodeURIComponent(name)}`);
  } catch (error) {
    write(byId("create-error"), error.message);
    button.disabled = false;
  }
}
