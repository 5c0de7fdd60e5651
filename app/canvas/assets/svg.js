// Elements of SVG. Text of the model only ever becomes textContent, so nothing of it can be markup.

export const SVG = "http://www.w3.org/2000/svg";

export function svgElement(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== "") made.setAttribute(key, value);
  for (const child of children) if (child) made.append(child);
  return made;
}

export function svgText(text, attributes) {
  const made = svgElement("text", attributes);
  made.textContent = text;
  return made;
}

export const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);

export function button(action, x, y, path, label) {
  const made = svgElement("g", {
    class: "button",
    "data-action": action,
    transform: `translate(${x} ${y})`,
    role: "button",
    "aria-label": label,
  });
  made.append(
    svgElement("rect", { width: 19, height: 19, x: -2.5, y: -1, rx: 5 }),
    svgElement("path", { d: path, transform: "translate(0 1.5)" }),
  );
  const title = svgElement("title");
  title.textContent = label;
  made.append(title);
  return made;
}

export const at = (point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
