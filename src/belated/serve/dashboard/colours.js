// A colour and a dash for each drawn option. The colours are safe for colour-blind readers (Okabe and Ito), and dashes
// distinguish lines without colour. An option keeps both while it is drawn, even if others come and go.

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [], [7, 4], [2, 3], [10, 3, 2, 3]];
export const DRAWN = DASHES.length;
const indices = new Map();

/** Give each of the names (at most DRAWN) the index of a colour. */
export function assignColours(names) {
  for (const name of indices.keys()) if (!names.includes(name)) indices.delete(name);
  for (const name of names) {
    const taken = new Set(indices.values());
    if (!indices.has(name)) indices.set(name, DASHES.findIndex((_, index) => !taken.has(index)));
  }
}

const variable = (name) => (indices.has(name) ? `--option-${indices.get(name) + 1}` : "--option-others");

/** The colour for style sheets, which follows light and dark mode. */
export const colour = (name) => `var(${variable(name)})`;

/** The present value of the colour, for a canvas. */
export const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(variable(name)).trim();

export const dash = (name) => DASHES[indices.get(name)] ?? [1, 3];
