// Follows a document of the server. Shows it once, then after each change, and reconnects when the connection is lost.
// The server sends the whole document first, and then what has changed (JSON Patch, RFC 6902).
// Reads event streams with fetch, because EventSource cannot send a key.

import { byId, write } from "/static/dom.js";
import { patched } from "/static/patch.js";
import { Problem, request, showAllowed } from "/static/server.js";
import { timeOfDay } from "/static/words.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const SILENCE_TIMEOUT = 60_000; // milliseconds. The server pings more often

/** Calls show(document) until a Problem, such as an unknown experiment, ends it. Passes that to fail(problem). */
export async function follow(livePath, show, fail) {
  let pause = FIRST_PAUSE;
  for (;;) {
    await isVisible(); // a browser has few connections to a server, so a hidden tab closes its own
    try {
      await followOnce(livePath, (document) => {
        show(document);
        pause = FIRST_PAUSE;
      });
    } catch (error) {
      if (error instanceof Problem && error.status < 500 && error.status !== 429) return fail(error);
    }
    if (document.hidden) continue;
    sayLost();
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

async function followOnce(livePath, show) {
  const abort = new AbortController();
  const stopIfHidden = () => document.hidden && abort.abort();
  document.addEventListener("visibilitychange", stopIfHidden);
  let silence;
  try {
    const stream = await request(`${livePath}?differences=true`, { signal: abort.signal });
    showAllowed(stream);
    const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let current = null;
    for (;;) {
      silence = setTimeout(() => abort.abort(), SILENCE_TIMEOUT);
      const { done, value } = await reader.read();
      clearTimeout(silence);
      if (done) return;
      const events = (text + value).split("\n\n");
      text = events.pop();
      if (events.length === 0) continue;
      for (const event of events) current = next(current, event);
      sayLive();
      draw(show, current);
    }
  } finally {
    clearTimeout(silence);
    abort.abort();
    document.removeEventListener("visibilitychange", stopIfHidden);
  }
}

/** An error while drawing must not look like a lost connection. */
function draw(show, data) {
  try {
    show(data);
  } catch (error) {
    reportError(error);
  }
  write(byId("updated"), `Last change ${timeOfDay(new Date())}`);
}

/** The document after an event, which is a new one or a patch. */
function next(current, event) {
  const field = (name) => event.split("\n").filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim()).join("\n");
  const data = JSON.parse(field("data"));
  return field("event") === "patch" ? patched(current, data) : data;
}

function isVisible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function sayLive() {
  byId("connection").dataset.state = "live";
  write(byId("connection"), "Live");
}

function sayLost() {
  byId("connection").dataset.state = "lost";
  write(byId("connection"), "Connection lost. Trying again.");
}
