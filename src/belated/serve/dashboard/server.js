// Calls to the server. If it needs a key, the page asks for it once and keeps it until the tab is closed.

import { el } from "/static/dom.js";

const STORED = "belated-key";
const NO_KEYS = "this service has no keys"; // how the server begins to say so
let asking = null; // one dialog at a time, even if several calls wait for the key

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Hide what the key may not do. The server says it with each stream. */
export function showAllowed(response) {
  const scopes = response.headers.get("Belated-Scopes");
  document.body.dataset.mayChange = String(scopes === null || scopes.split(" ").includes("admin"));
}

export function prepareOtherKey(button) {
  button.addEventListener("click", () => {
    sessionStorage.removeItem(STORED);
    location.reload(); // the page asks for another
  });
}

export const hasKey = () => sessionStorage.getItem(STORED) !== null;
export const pathOf = (name) => `/v1/experiments/${encodeURIComponent(name)}`;

/** Fetch, with the key if there is one. A 401 asks for a key and tries again. */
export async function request(path, options = {}) {
  for (;;) {
    const key = sessionStorage.getItem(STORED);
    const headers = { ...options.headers, ...(key === null ? {} : { Authorization: `Bearer ${key}` }) };
    const response = await fetch(path, { cache: "no-store", ...options, headers });
    if (response.ok) return response;
    if (response.status !== 401) {
      const refused = await problem(response);
      if (response.status !== 403 || key === null || !refused.message.startsWith(NO_KEYS)) throw refused;
      sessionStorage.removeItem(STORED); // this server has no keys any more, and refuses all that are sent
      continue;
    }
    if (sessionStorage.getItem(STORED) === key) sessionStorage.removeItem(STORED);
    asking ??= askForKey(key !== null).finally(() => (asking = null));
    await asking;
  }
}

async function problem(response) {
  const words = await response.json().catch(() => ({}));
  return new Problem(response.status, words.detail ?? words.title ?? `The server answered ${response.status}.`);
}

export async function get(path) {
  return (await request(path)).json();
}

export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** A link cannot send a key, so fetch the file and save it. */
export function downloadWithKey(link) {
  link.addEventListener("click", async (event) => {
    if (!hasKey()) return; // the plain link works, and streams
    event.preventDefault();
    const file = await (await request(link.getAttribute("href"))).blob();
    const address = URL.createObjectURL(file);
    el("a", { href: address, download: link.download }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  });
}

function askForKey(wasRefused) {
  const field = el("input", { id: "key-field", type: "password", autocomplete: "off", required: "", "data-testid": "key" });
  const form = el(
    "form",
    { class: "key" },
    el("h1", {}, "This server needs a key"),
    el("p", {}, "Paste an access key of this server. To look, the scope read is enough. To create or change experiments, it has to be admin. Only this tab keeps the key, and forgets it when you close it."),
    el("label", { for: "key-field" }, "Access key"),
    field,
    el("p", { class: "error", role: "alert" }, wasRefused ? "The server did not accept that key." : ""),
    el("button", { class: "primary" }, "Continue"),
  );
  const dialog = el("dialog", { "aria-label": "Key" }, form);
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // without a key there is nothing to show
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(STORED, field.value.trim());
      dialog.remove();
      resolve();
    });
  });
}
