// Runs in the page and reports what a reader would see: what is hard to read, cut off, covered, or said to nobody.
() => {
  const article = document.querySelector("article.bd-article") || document.body;
  const name = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute("class") || ""}"> ${e.textContent.trim().slice(0, 50)}`;

  // Before anything is unfolded: is the article on top where a reader looks?
  const box = article.getBoundingClientRect();
  const at = document.elementFromPoint(innerWidth / 2, Math.min(box.top + 60, innerHeight / 2));
  const covered = article.contains(at) ? null : at && name(at);

  document.querySelectorAll("details").forEach((e) => (e.open = true));

  const parse = (text) => {
    const n = (text.match(/[\d.]+/g) || []).map(Number);
    return /^rgba?\(/.test(text) ? { c: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 } : null;
  };
  const over = (top, a, below) => top.map((v, i) => v * a + below[i] * (1 - a));
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

  // What lies behind an element: the backgrounds of its ancestors, and in a figure the shapes drawn before it.
  const behind = (e) => {
    const layers = [];
    for (let p = e; p; p = p.parentElement) layers.unshift(parse(getComputedStyle(p).backgroundColor));
    let color = [255, 255, 255];
    for (const layer of layers) if (layer) color = over(layer.c, layer.a, color);
    const svg = e.closest("svg");
    if (svg) {
      const r = e.getBoundingClientRect();
      const [x, y] = [(r.left + r.right) / 2, (r.top + r.bottom) / 2];
      for (const shape of svg.querySelectorAll("path, rect, use")) {
        if (!(shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
        const s = shape.getBoundingClientRect();
        const style = getComputedStyle(shape);
        const fill = parse(style.fill);
        if (fill && s.left <= x && x <= s.right && s.top <= y && y <= s.bottom)
          color = over(fill.c, fill.a * style.fillOpacity * style.opacity, color);
      }
    }
    return color;
  };
  const ownText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const low = new Set();
  let texts = 0;
  for (const e of document.querySelectorAll("main *, nav a, .bd-sidebar a, .bd-sidebar p, .prev-next-area *, footer p, footer a")) {
    if (!ownText(e) || e.closest(".headerlink, .sr-only, script, style, mjx-container, [aria-hidden=true]")) continue;
    const style = getComputedStyle(e);
    if (!e.getClientRects().length || style.visibility === "hidden") continue;
    const ink = parse(e.closest("svg") ? style.fill : style.color);
    if (!ink) continue;
    let alpha = ink.a;
    for (let p = e; p; p = p.parentElement) alpha *= Number(getComputedStyle(p).opacity);
    if (alpha === 0) continue;
    texts += 1;
    const ground = behind(e);
    const contrast = ratio(over(ink.c, alpha, ground), ground);
    if (contrast < 4.5) low.add(`${contrast.toFixed(2)} ${name(e)}`);
  }

  // A picture in a link or button that has a name of its own is an ornament and rightly says nothing.
  const named = (e) => {
    const around = e.closest("a, button");
    return around && (around.textContent.trim() || around.getAttribute("aria-label") || around.title);
  };
  const alts = [];
  for (const e of document.querySelectorAll("img, svg")) {
    const alt = e.getAttribute(e.tagName === "IMG" ? "alt" : "aria-label") || "";
    if (e.closest("[aria-hidden=true], mjx-container") || (!alt && named(e))) continue;
    alts.push({ alt, what: e.outerHTML.slice(0, 100), content: article.contains(e) });
  }

  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  return {
    covered,
    texts,
    low: [...low],
    alts,
    overflow: document.scrollingElement.scrollWidth - innerWidth,
    theme: document.documentElement.dataset.theme,
    lang: document.documentElement.lang,
    title: document.title,
    headings: document.querySelectorAll("main h1:not(#jb-print-docs-body h1)").length,
    twice: ids.filter((id, i) => ids.indexOf(id) !== i),
    boxes: [...document.querySelectorAll(".cell_output .text_html, .cell_output svg[role=img], .cell_output img")]
      .map((e) => parse(getComputedStyle(e).backgroundColor))
      .filter((c) => c && c.a > 0).length,
  };
}
