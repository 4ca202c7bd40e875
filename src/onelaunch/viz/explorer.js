// Shared by all explorers: reads the knobs, calls `draw(data, settings)` and shows the words and the picture it returns.
const WIDTH = 346, TEXT = 10.5; // points, as in canvas.py
const FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif";
const BLUE = "#0072b2", ORANGE = "#d55e00", GREEN = "#009e73", GREY = "#808080";

const explore = (kind, draw) => {
  // Not by id: the same output may stand twice in a page, and a notebook shows outputs again.
  for (const root of document.querySelectorAll(`.onelaunch-explorer[data-kind="${kind}"]:not([data-ready])`)) {
    root.dataset.ready = "";
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const form = root.querySelector("form"), said = root.querySelector(".said"), picture = root.querySelector(".picture");
    const show = () => {
      const settings = {};
      for (const input of form.querySelectorAll("[name]")) {
        settings[input.name] = input.value;
        if (input.type === "range") {
          const value = JSON.parse(input.dataset.stops)[Number(input.value)];
          settings[input.name] = value;
          input.closest("label").querySelector("b").textContent = value + input.dataset.unit;
          input.setAttribute("aria-valuetext", value + input.dataset.unit);
        }
      }
      for (const label of form.querySelectorAll("[data-when]")) {
        const [other, value] = JSON.parse(label.dataset.when);
        label.hidden = settings[other] !== value;
      }
      const { words, svg } = draw(data, settings);
      said.textContent = words;
      if (svg) picture.replaceChildren(svg);
    };
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }
};

// As Python rounds: a tie goes to the even digit, where toFixed goes up. Only multiples of 1/2^(digits+1) are ties.
const fixed = (value, digits) => {
  const parts = value * 2 ** (digits + 1);
  if (!Number.isInteger(parts) || parts % 2 === 0) return value.toFixed(digits);
  const low = Math.floor(value * 10 ** digits);
  return ((low + (low % 2 ? 1 : 0)) / 10 ** digits).toFixed(digits);
};
const percent = (share, digits = 0) => `${fixed(100 * share, digits)}%`;
const plural = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

// As many digits as one reads: `number` of canvas.py.
const number = (value) => {
  if (value >= 100 || Number.isInteger(value)) return Number(fixed(value, 0)).toLocaleString("en-US");
  return value >= 1 ? fixed(value, 1) : String(Number(value.toPrecision(2)));
};

// Paper and pens: `Canvas` of canvas.py. Text takes the page's colour.
const paper = (height, words) => {
  const make = (name, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent?.append(element);
    return element;
  };
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": words });
  svg.style.fontFamily = FONTS;
  const points = (all) => all.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
  return {
    svg,
    text(x, y, text, { align = "start", bold = false, faint = false } = {}) {
      const made = make("text", { x, y: y + 0.35 * TEXT, "text-anchor": align }, svg);
      made.style.cssText = `fill:currentColor;font-size:${TEXT}px;${bold ? "font-weight:700;" : ""}${faint ? "opacity:.75" : ""}`;
      made.textContent = text;
    },
    box(x, y, width, height, color, { fill = 0.22, edge = 1, dashed = false } = {}) {
      make("rect", {
        x: x + edge / 2, y: y + edge / 2, width: Math.max(width - edge, 0.1), height: Math.max(height - edge, 0.1),
        fill: color, "fill-opacity": fill, stroke: edge ? color : "none", "stroke-width": edge,
        ...(dashed ? { "stroke-dasharray": "2.5 2" } : {}),
      }, svg);
    },
    line(all, color = "currentColor", width = 0.8, dashed = false) {
      make("polyline", {
        points: points(all), fill: "none", stroke: color, "stroke-width": width, "stroke-linejoin": "round",
        ...(dashed ? { "stroke-dasharray": "2 2" } : {}),
      }, svg);
    },
    area(all, color, fill = 0.22) {
      make("polygon", { points: points(all), fill: color, "fill-opacity": fill }, svg);
    },
  };
};
const ticks = (top) => {
  const step = [1, 2, 5, 10, 16, 32, 64, 128, 256, 512, 1e9].find((s) => top / s <= 8.5);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
};
