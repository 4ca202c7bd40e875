// Lays out the kernels as `lay_out` of timeline/simulate.py does: one launch for each, or one for all.
const layOut = (times, launch, asGraph) => {
  const host = [], device = [], starts = [];
  let now = 0, free = 0;
  const work = (name, us, kernel) => {
    host.push({ name, start: now, end: now + us, kernel });
    now += us;
  };
  const run = (kernel, ready, gap) => {
    const start = Math.max(ready, device.length ? free + gap : 0);
    device.push({ name: times[kernel].name, start, end: start + times[kernel].us, kernel });
    free = start + times[kernel].us;
    return start;
  };
  if (launch.prepare_us) work("prepare", launch.prepare_us);
  if (asGraph) {
    work("graph launch", launch.graph_us + launch.node_us * times.length);
    const ready = now + launch.delay_us;
    times.forEach((_, kernel) => run(kernel, ready, kernel ? launch.graph_gap_us : launch.stream_gap_us));
  } else {
    times.forEach((_, kernel) => {
      const ahead = starts.length - launch.queue;
      if (ahead >= 0 && starts[ahead] > now) work("wait", starts[ahead] - now);
      work("launch", launch.launch_us, kernel);
      starts.push(run(kernel, now + launch.delay_us, launch.stream_gap_us));
    });
  }
  const done = device.at(-1).end;
  if (done > now) work("wait", done - now);
  if (launch.finish_us) work("finish", launch.finish_us);
  const sum = (spans) => spans.reduce((total, span) => total + (span.end - span.start), 0);
  const busy = sum(device), worked = sum(host.filter((span) => span.name !== "wait"));
  return { host, device, step: now, busy, launchBound: now - busy > now - worked };
};

const pen = document.createElement("canvas").getContext("2d");
const fits = (label, width) => {
  pen.font = `${TEXT}px system-ui, sans-serif`;
  return pen.measureText(label).width <= width - 3;
};
const milliseconds = (us) => `${fixed(us / 1e3, 2)} ms`;

explore("explore_step", (data, settings) => {
  const model = data.models[settings.model], us = model.us[settings.gpu][settings.batch];
  const times = model.order.map((kind) => ({ name: model.names[kind], us: us[kind] }));
  const launch = { ...data.launch, launch_us: settings.launch_us };
  const eager = layOut(times, launch, false), graph = layOut(times, launch, true);
  const words =
    `Simulated: ${times.length} kernels, ${milliseconds(eager.step)} eagerly and ${milliseconds(graph.step)} as a graph, ` +
    `${fixed(eager.step / graph.step, 2)} times as fast. The device computes in ${percent(eager.busy / eager.step)} of the ` +
    `eager step and in ${percent(graph.busy / graph.step)} of the graph. ` +
    (eager.launchBound ? "Eagerly it waits for the host: launch-bound." : "Eagerly the host waits for it: not launch-bound.");

  const left = 48, lane = 20, steps = [["eager", eager], ["as a graph", graph]];
  const window = Math.max(...steps.map(([, step]) => step.device[Math.min(10, times.length) - 1].end));
  const canvas = paper(92 * 2 + 36 + 20 + 44, `${data.alt} ${words}`);
  const scale = (WIDTH - left - 4) / window, x = (time) => left + time * scale;
  const edge = (width) => (width > 4 ? 1 : 0.4);
  steps.forEach(([title, step], index) => {
    const y = 92 * index, hostY = y + 16, deviceY = y + 54, launched = {};
    canvas.text(0, y + 7, title, { bold: true });
    canvas.text(0, hostY + lane / 2, "host");
    canvas.text(0, deviceY + lane / 2, "device");
    for (const span of step.host) {
      if (span.start >= window) break;
      const width = x(Math.min(span.end, window)) - x(span.start), middle = x(span.start) + width / 2;
      if (span.kernel !== undefined) launched[span.kernel] = span.end;
      if (span.name === "graph launch") launched[0] = span.end;
      if (span.name === "wait") {
        canvas.line([[x(span.start), hostY + lane / 2], [x(span.start) + width, hostY + lane / 2]], GREY, 0.8, true);
        if (fits("waits for the device", width)) {
          canvas.text(middle, hostY + lane / 2 - 8, "waits for the device", { align: "middle", faint: true });
        }
        continue;
      }
      canvas.box(x(span.start), hostY, width, lane, BLUE, { edge: edge(width) });
      const label = span.kernel === undefined ? span.name : String(span.kernel + 1);
      if (fits(label, width)) canvas.text(middle, hostY + lane / 2, label, { align: "middle" });
    }
    let free = 0;
    for (const span of step.device) {
      if ((Math.min(span.start, window) - free) * scale > 3) {
        canvas.line([[x(free), deviceY + lane / 2], [x(Math.min(span.start, window)), deviceY + lane / 2]], GREY, 0.8, true);
      }
      free = span.end;
      if (span.start >= window) break;
      if (launched[span.kernel] <= window) {
        canvas.line([[x(launched[span.kernel]), hostY + lane], [x(span.start), deviceY]], GREY, 0.9);
      }
      const width = x(Math.min(span.end, window)) - x(span.start);
      canvas.box(x(span.start), deviceY, width, lane, ORANGE, { edge: edge(width) });
      if (fits(span.name, width)) canvas.text(x(span.start) + width / 2, deviceY + lane / 2, span.name, { align: "middle" });
    }
  });

  const axis = 184;
  const powers = Array.from({ length: 12 }, (_, at) => 10 ** (at - 3));
  const tick = powers.flatMap((power) => [power, 2 * power, 5 * power]).find((step) => window / step <= 6);
  canvas.line([[left, axis], [x(window), axis]], GREY);
  for (let time = 0; time <= window; time += tick) {
    canvas.line([[x(time), axis], [x(time), axis + 4]], GREY);
    canvas.text(Math.min(x(time), WIDTH), axis + 13, number(time), { align: x(time) > WIDTH - 16 ? "end" : "middle", faint: true });
  }
  canvas.text(WIDTH, axis + 28, "µs since the step began", { align: "end", faint: true });

  const full = 220, nameWidth = 66, unit = (WIDTH - nameWidth - 66) / Math.max(eager.step, graph.step);
  canvas.text(0, full + 9, "the whole step", { bold: true });
  steps.forEach(([title, step], index) => {
    const y = full + 20 + 22 * index;
    canvas.text(nameWidth - 8, y + 9, title, { align: "end" });
    canvas.box(nameWidth, y + 2, step.step * unit, 14, GREY, { fill: 0.15 });
    canvas.box(nameWidth, y + 2, step.busy * unit, 14, ORANGE, { fill: 0.75, edge: 0 });
    canvas.text(nameWidth + step.step * unit + 6, y + 9, milliseconds(step.step));
  });
  return { words, svg: canvas.svg };
});
