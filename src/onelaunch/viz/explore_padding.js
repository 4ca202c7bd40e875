explore("explore_padding", (data, settings) => {
  const counts = data.traffics[settings.traffic];
  let list = data.lists[settings.list];
  if (settings.list === data.best_name) {
    list = { sizes: data.best[settings.traffic][settings.graphs], pads: true, fails_up_to: 0 };
  }
  if (settings.list === data.own_name) {
    const words = settings.own.split(/[\s,]+/).filter(Boolean);
    const wrong = words.find((word) => !/^[0-9]{1,4}$/.test(word) || Number(word) === 0);
    if (wrong !== undefined || !words.length) return { words: `${data.own_help} Found "${wrong ?? ""}".` };
    list = { sizes: [...new Set(words.map(Number))].sort((a, b) => a - b), pads: true, fails_up_to: 0 };
  }
  const { sizes, pads, fails_up_to } = list;
  const padded = (size) => sizes.find((recorded) => recorded >= size);
  const runAs = (size) => (pads || padded(size) === size ? padded(size) : undefined); // undefined: no graph

  let live = 0, dummies = 0, eager = 0, steps = 0;
  for (const [size, often] of counts) {
    const recorded = runAs(size);
    steps += often;
    if (recorded === undefined) eager += often;
    else { live += size * often; dummies += (recorded - size) * often; }
  }
  const batch = settings.batch, recorded = runAs(batch);
  const s = batch === 1 ? "s" : "", raises = padded(batch) === undefined && batch <= fails_up_to;
  let words = `${plural(batch, "request")} find${s} no graph`;
  words += raises ? ", and the engine raises an error." : ` and run${s} eagerly.`;
  if (recorded !== undefined) {
    words = `${plural(batch, "request")} run${s} as ${recorded}: ${plural(recorded - batch, "row")} of padding, ` +
      `${percent(recorded / batch - 1)} on top.`;
  }
  words += ` On this traffic ${plural(sizes.length, "graph")} ${sizes.length === 1 ? "computes" : "compute"} ` +
    `${percent(live ? dummies / live : 0, 1)} more rows than were asked for`;
  words += eager ? `, and ${percent(eager / steps, 1)} of the steps find no graph.` : ", and every step finds a graph.";

  const left = 40, plot = 200, below = 62, top = data.top;
  const highest = Math.max(top, padded(Math.min(top, sizes.at(-1))));
  const canvas = paper(plot + 34 + below, `${data.alt} ${words}`);
  const unitX = (WIDTH - left - 12) / top, unitY = (plot - 8) / highest;
  const at = (x, y) => [left + unitX * x, plot - unitY * y];
  const stairs = [], diagonal = [];
  for (let size = 1; size <= top; size++) {
    const run = runAs(size) ?? size; // what runs eagerly wastes nothing
    stairs.push(at(size - 1, run), at(size, run));
    diagonal.push(at(size - 1, size), at(size, size));
  }
  canvas.area([...stairs, ...[...diagonal].reverse()], ORANGE, 0.35);
  canvas.line([at(0, 0), ...diagonal], GREY);
  canvas.line([at(0, 0), ...stairs], "currentColor", 1.1);
  canvas.line([at(0, highest), at(0, 0), at(top, 0)], GREY);
  for (let first = 1; first <= top; first++) { // runs of batches without a graph
    let last = first - 1;
    while (last < top && runAs(last + 1) === undefined) last++;
    if (last < first) continue;
    canvas.line([at(first - 1, 0), at(last, 0)], BLUE, 3);
    if (unitX * (last - first + 1) > 54) {
      canvas.text(at((first - 1 + last) / 2, 0)[0], plot - 10, "no graph", { align: "middle", faint: true });
    }
    first = last;
  }
  for (const tick of ticks(top)) canvas.text(at(tick, 0)[0], plot + 12, tick, { align: "middle", faint: true });
  for (const tick of ticks(highest)) canvas.text(left - 5, at(0, tick)[1], tick, { align: "end", faint: true });
  canvas.text(left + 5, 8, "run as", { faint: true });
  canvas.text(WIDTH, plot + 27, "requests in the batch", { align: "end", faint: true });
  if (recorded === undefined) canvas.line([at(batch - 0.5, 0), at(batch - 0.5, batch)], BLUE, 2.2, true);
  else {
    const [x, y] = at(batch - 0.5, recorded), room = x - 6 > left + 90;
    canvas.line([at(batch - 0.5, batch), [x, y]], BLUE, 2.2);
    canvas.text(room ? x - 6 : left + 90, y - 9, `${batch} run${s} as ${recorded}`, { align: "end", bold: true });
  }
  const base = plot + 34 + below - 4, scale = (below - 22) / Math.max(...counts.map(([, often]) => often));
  for (const [size, often] of counts) {
    if (size <= top) canvas.area([[left + unitX * (size - 1), base], [left + unitX * (size - 1), base - scale * often],
      [left + unitX * size, base - scale * often], [left + unitX * size, base]], GREY, 0.7);
  }
  canvas.line([[left, base], [left + unitX * top, base]], GREY);
  canvas.text(left + 5, plot + 42, "how often", { faint: true });
  return { words, svg: canvas.svg };
});
