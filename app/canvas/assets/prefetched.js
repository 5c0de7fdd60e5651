// Overlays that were sent ahead: each step is a change of the one before, and shows the marks of now.

/** One overlay after a change; None of Python takes an entry away. */
export function patched(full, change) {
  const made = { ...full };
  for (const [name, value] of Object.entries(change)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      made[name] = value;
      continue;
    }
    made[name] = { ...full[name] };
    for (const [key, one] of Object.entries(value)) one === null ? delete made[name][key] : (made[name][key] = one);
  }
  return made;
}

const MARK = /\b(selected|breakpoint( off)?|origin(-\d)?)\b/g;

export function marksOf(overlay) {
  const found = {};
  for (const [id, classes] of Object.entries(overlay.nodes ?? {})) {
    const marks = classes.match(MARK);
    if (marks) found[id] = marks.join(" ");
  }
  return found;
}

export function withMarks(nodes, marks) {
  const made = { ...nodes };
  for (const [id, mark] of Object.entries(marks)) made[id] = `${made[id] ?? ""} ${mark}`.trim();
  return made;
}
