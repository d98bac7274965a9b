// What is wrong with a form, told at the field and in the words of the page.

import { el } from "/static/dom.js";
import { percent, total } from "/static/words.js";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Tell the first problem at its field. `checks` has fields, whether they are wrong, and what to do. */
export function isFine(form, checks) {
  forget(form);
  const found = checks.find(([, isWrong]) => isWrong);
  if (!found) return true;
  const [field, , words] = found;
  const note = el("p", { id: "field-error", class: "error", role: "alert", "data-testid": "field-error" }, words);
  (field.closest(".unit, .pair") ?? field).after(note);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", note.id);
  field.focus();
  form.addEventListener("input", () => forget(form), { once: true }); // it may be right now
  return false;
}

function forget(form) {
  for (const note of form.querySelectorAll("[data-testid=field-error]")) note.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

export const numberIn = ({ value }) => (value.trim() === "" ? null : Number(value));

export function nameChecks(field) {
  const name = field.value.trim();
  const example = name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-._]+|[-._]+$/g, "").slice(0, 40) || "my-experiment";
  return [[field, !NAME.test(name), `Use up to 100 letters, digits, dots, dashes and underscores, and begin with a letter or digit, such as ${example}.`]];
}

export function optionChecks(fields) {
  const names = fields.map((field) => field.value.trim());
  return fields.map((field, index) => [field, names[index] !== "" && names.indexOf(names[index]) < index, `There is an option “${names[index]}” already.`]);
}

/** The default of an outcome from `lowest` to `highest`. */
export function defaultChecks({ default_outcome: field, wait }, { lowest, highest }) {
  const fallback = numberIn(field);
  return [
    [field, fallback !== null && numberIn(wait) === null, "This is used when the wait ends. Say above how long to wait."],
    [field, fallback !== null && (fallback < lowest || fallback > highest), `An outcome lies between ${total(lowest)} and ${total(highest)}.`],
  ];
}

/** The minimum of `n` options, and the holdout, if the option that it shows was named. */
export function shareChecks({ floor, holdout, control }, n, isNamed = control.value !== "") {
  return [
    [floor, (numberIn(floor) ?? 0) * n > 100 + 1e-9, `With ${n} options it can be at most ${percent(1 / n)}.`],
    [holdout, isNamed && !numberIn(holdout), "Say how many decisions to hold out, or let them show all options alike."],
  ];
}
