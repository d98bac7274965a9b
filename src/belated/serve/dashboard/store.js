// The health of the store, in words.

import { byId, writeTo } from "/static/dom.js";
import { bytes, count, duration, plural, total } from "/static/words.js";

const SLOW_COMMIT = 100; // milliseconds
const LONG_QUEUE = 1000;
const LONG_LAG = 1; // seconds

export function showStore({ store }) {
  const [state, verdict, words] = health(store);
  document.querySelector('[data-testid="store-state"]').dataset.state = state;
  writeTo("store-state", verdict);
  writeTo("store-words", words);
  writeTo("store-kind", { sqlite: "SQLite file", postgresql: "PostgreSQL", memory: "memory only" }[store.kind] ?? store.kind);
  writeTo("store-entries", `${count(store.entries)} (${bytes(store.bytes)})`);
  writeTo("store-commit", store.last_commit_ms === null ? "none yet" : `${total(store.last_commit_ms)} ms`);
  writeTo("store-queue", count(store.queue));
  writeTo("store-lag", store.lag_seconds < 0.001 ? "not at all" : `${plural(store.lag_entries, "entry", "entries")}, ${duration(store.lag_seconds)}`);
  writeTo("store-unsnapshotted", plural(store.unsnapshotted, "entry", "entries"));
  byId("store").hidden = false;
  byId("alarm").hidden = store.writable; // at the top of the page, so that nobody has to scroll to see it
}

function health(store) {
  if (!store.writable) return ["bad", "Cannot save", `The server cannot write to its store, and refuses new decisions and outcomes. ${remedy(store)} Everything saved so far is safe.`];
  if (store.lag_seconds > LONG_LAG) return ["slow", "Behind", "Everything is saved, but this server has not read the newest entries of the other servers. Until it does, its decisions and this page use older data."];
  if (store.queue > LONG_QUEUE || store.last_commit_ms > SLOW_COMMIT) return ["slow", "Slow", "Everything is saved, but saving is slow. Answers may be delayed."];
  return ["good", "Healthy", "Every decision and every outcome is saved before it is confirmed."];
}

function remedy({ kind }) {
  return kind === "sqlite" ? "Free up disk space and restart the server." : "If the database cannot be reached, the server recovers by itself when it is back. After any other failure, restart the server.";
}
