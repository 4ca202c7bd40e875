// Turns the page of an exercise into a place to do it: the notebook's answer cells become editors, its check cells show
// verdicts. Without this script the page is the notebook, to be read and opened elsewhere.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("exercise").textContent);
  const article = document.querySelector("article.bd-article");

  // make("p.note", "text", child, ...): an element with its classes and what is in it.
  const make = (what, ...inside) => {
    const [tag, ...classes] = what.split(".");
    const element = document.createElement(tag);
    element.classList.add(...classes);
    element.append(...inside);
    return element;
  };
  const button = (text, onClick) => {
    const element = make("button.exercise-button", text);
    element.type = "button";
    element.addEventListener("click", onClick);
    return element;
  };

  const NOT_KEPT = "This browser keeps nothing for this page: your text is gone when you close it. Download it first.";
  const store = new window.onelaunch.Store(data.key, data.release);
  const keep = () => {
    const mine = editors.filter((cell) => cell.field.value !== cell.source);
    const before = store.works;
    const kept = store.keep(Object.fromEntries(mine.map((cell) => [idOf(cell), cell.field.value])));
    if (before && !kept) notes.append(make("p", NOT_KEPT));
  };

  // ---- The notebook's cells on the page, and what takes their place.
  const cells = data.cells.map((cell) => ({ ...cell }));
  const onPage = (cell) => {
    const tries = cell.role === "try" || cell.role === "elsewhere";
    const tag = tries ? "tag_try" : `tag_${cell.role}:${cell.name}`;
    const found = [...article.querySelectorAll(".cell")].filter((element) => element.classList.contains(tag));
    return tries ? found[cell.name - 1] : found[0];
  };
  const places = new Map(cells.filter((cell) => cell.role !== "setup").map((cell) => [cell, onPage(cell)]));
  const idOf = (cell) => `${cell.role}:${cell.name}`;
  const editors = cells.filter((cell) => cell.role === "answer" || cell.role === "try");
  const checks = cells.filter((cell) => cell.role === "check");

  // The cells that one Run is about: from the first answer after a check (or the start) to the last check behind it.
  const partOf = (cell) => {
    let first = cells.indexOf(cell);
    while (first > 0 && cells[first - 1].role !== "check") first -= 1;
    let last = cells.indexOf(cell);
    while (last + 1 < cells.length && !(cells[last].role === "check" && cells[last + 1].role !== "check")) last += 1;
    return [first, last];
  };

  const KEYS = "keys-of-editors";
  let edits = 0;
  const buildEditor = (cell) => {
    cell.label = cell.role === "answer" ? cell.name : "Try it";
    const label = cell.role === "answer" ? `Your answer: ${cell.name}` : cell.label;
    cell.field = window.onelaunch.makeEditor(label, store.texts[idOf(cell)] ?? cell.source, {
      onInput: () => {
        edits += 1;
        if (cell.role === "answer") doubt(cell);
        cell.reset.textContent = "Reset";
        cell.before = null;
        clearTimeout(cell.timer);
        cell.timer = setTimeout(keep, 300);
      },
      onRun: () => run(...partOf(cell)),
    });
    cell.field.setAttribute("aria-describedby", KEYS);
    cell.reset = button("Reset", () => {
      const back = cell.before !== null && cell.before !== undefined;
      const before = cell.field.value;
      cell.field.value = back ? cell.before : cell.source;
      cell.field.dispatchEvent(new Event("input"));
      if (!back) {
        cell.before = before;
        cell.reset.textContent = "Undo reset";
      }
    });
    cell.printed = make("pre.exercise-output");
    cell.printed.hidden = true;
    cell.said = make("p.exercise-status");
    cell.said.setAttribute("role", "status");
    const go = button(cell.role === "answer" ? "Run and check" : "Run", () => {
      if (runner.running) runner.cancel();
      else run(...partOf(cell));
    });
    go.classList.add("exercise-go");
    cell.go = go;
    const heading = make("p.exercise-label", label);
    return make("div.exercise-editor", heading, cell.field, make("div.exercise-row", go, cell.reset), cell.said, cell.printed);
  };

  const buildCheck = (cell) => {
    const { title, hints } = data.checks[cell.name];
    cell.badge = make("strong.exercise-badge");
    cell.about = make("dl.exercise-about");
    cell.shown = 0;
    const list = make("ol.exercise-hints");
    const more = button("", () => {
      const item = make("li", hints[cell.shown]);
      item.value = cell.shown + 1;
      list.append(item);
      cell.shown += 1;
      cell.nameHint();
    });
    cell.nameHint = () => {
      more.hidden = cell.shown === hints.length;
      more.textContent = `Hint ${cell.shown + 1} of ${hints.length}`;
      more.setAttribute("aria-label", `${more.textContent} to check ${cell.name}`);
    };
    cell.nameHint();
    list.setAttribute("aria-live", "polite");
    cell.box = make("div.exercise-check", make("p", cell.badge, ` ${cell.name}. ${title}`), cell.about, list, more);
    show(cell, null);
    return cell.box;
  };

  // ---- Verdicts.
  const NOT_JUDGED = "NOT JUDGED";
  const show = (cell, verdict) => {
    cell.verdict = verdict;
    const status = verdict?.status ?? NOT_JUDGED;
    cell.badge.textContent = status;
    cell.box.dataset.status = status;
    cell.about.replaceChildren();
    for (const name of ["call", "expected", "got", "hint"]) {
      if (verdict?.[name] && status !== "PASS") cell.about.append(make("dt", name), make(`dd.exercise-${name}`, verdict[name]));
    }
    if (cell.shown === 0 && verdict?.hint && verdict.hint === data.checks[cell.name].hints[0]) {
      cell.shown = 1; // it stands there already
      cell.nameHint();
    }
    score();
  };
  // An edit makes what was said about it, and about what stands below it, a matter of the past.
  const doubt = (cell) => {
    for (const check of checks.filter((one) => cells.indexOf(one) > cells.indexOf(cell))) show(check, null);
    for (const one of editors) one.said.textContent = "";
    end.textContent = "";
  };
  const points = make("strong");
  const score = () => {
    const passed = checks.filter((one) => one.verdict?.status === "PASS").length;
    points.textContent = `${passed} of ${checks.length}`;
  };

  // ---- Running.
  const megabytes = Math.round(Object.values(data.python.files).reduce((sum, [bytes]) => sum + bytes, 0) / 1e6);
  const host = data.python.bundled ? "this site" : new URL(data.python.at).host;
  let saying = null; // where this run reports to
  const runner = new window.onelaunch.Runner(data, (share) => {
    const percent = 10 * Math.floor(10 * share); // in steps, as each is read aloud to those who do not see it
    const words = percent < 100 ? `Loading Python from ${host}: ${percent}% of ${megabytes} MB` : "Starting Python";
    if (saying && saying.textContent !== words) saying.textContent = words;
  });
  const stopper = () => {
    for (const cell of editors) cell.go.textContent = runner.running ? "Stop" : cell.role === "answer" ? "Run and check" : "Run";
    all.textContent = runner.running ? "Stop" : "Check everything";
  };

  const output = (cell, text, wrong) => {
    cell.printed.textContent = text;
    cell.printed.hidden = !text;
    cell.printed.classList.toggle("exercise-wrong", wrong);
  };

  // Define all answers up to `last`, then judge, then run what is tried, from `first` to `last`: what is tried may run
  // for ever as well, and it is the check that is to say so.
  const run = async (first, last, say) => {
    if (runner.running || UNFIT) return;
    saying = say ?? cells.slice(first).find((cell) => cell.said).said;
    const upTo = cells.slice(0, last + 1);
    const judged = upTo.filter((cell, at) => at >= first && cell.role === "check");
    const tried = upTo.filter((cell, at) => at >= first && cell.role === "try");
    const chosen = [...upTo.filter((cell) => cell.role === "setup" || cell.role === "answer"), ...judged, ...tried];
    for (const cell of chosen) if (cell.printed) output(cell, "", false);
    for (const cell of judged) show(cell, null);
    const asked = (cell) =>
      cell.role === "check"
        ? { do: "check", exercise: data.key, number: Number(cell.name) }
        : { do: "cell", name: cell.role === "answer" ? cell.name : `${cell.role}-${cell.name}`, source: cell.field?.value ?? cell.source };
    for (const one of [...editors.map((cell) => cell.said), end]) one.textContent = "";
    saying.textContent = "Running";
    const begun = edits;
    const ending = runner.run([{ do: "begin" }, ...chosen.map(asked)], (at, result) => {
      const cell = chosen[at - 1];
      if (edits !== begun) return; // about a text that is not there any more
      if (cell?.role === "check") show(cell, result);
      else if (cell?.printed) output(cell, [result.printed, result.error].filter(Boolean).join("\n"), Boolean(result.error));
    });
    stopper();
    const outcome = await ending;
    stopper();
    const changed = edits !== begun && !outcome.unloaded;
    saying.textContent = changed
      ? "You wrote on while this ran: run it again."
      : conclude(outcome, chosen[(outcome.slow ?? outcome.at) - 1], judged);
    saying = null;
  };

  // What a run came to, in a sentence; a check that was stopped has failed.
  const conclude = (outcome, cell, judged) => {
    const verdicts = () => {
      const words = judged.filter((one) => one.verdict).map((one) => `${one.name}: ${one.verdict.status}`);
      const errors = editors.filter((one) => one.printed.classList.contains("exercise-wrong")).map((one) => one.label);
      const raised = errors.length ? ` A cell raised an error: ${errors.join(", ")}.` : "";
      return (words.length ? `Check ${words.join(", ")}.` : "Done.") + raised;
    };
    if (outcome.ended) return verdicts();
    if (outcome.cancelled) return "Stopped.";
    if (outcome.unloaded) {
      const ask = data.python.bundled ? "Is the site complete?" : "Is there a network? Another way: open the exercise in Colab.";
      return `Python could not be loaded from ${host}: ${outcome.unloaded}. ${ask}`;
    }
    const got = outcome.broken ? `Python itself stopped: ${outcome.broken}` : `no answer within ${data.seconds} s`;
    const hint = outcome.broken ? "Does something end Python, or grow without an end?" : "Is there a loop that never ends?";
    if (cell?.role === "check") show(cell, { status: "FAIL", got, hint });
    else if (cell?.printed) output(cell, `${got}. ${hint}`, true);
    const rest = judged.some((one) => !one.verdict) ? " What comes after it was not judged." : "";
    return `${cell?.role === "check" ? `Check ${cell.name}` : "A cell"} was stopped: ${got}. ${hint}${rest}`;
  };

  // ---- The notebook with the answers in it, to go on elsewhere or to hand in.
  const download = async () => {
    try {
      const notebook = await (await fetch(data.notebook_at)).json();
      const lines = (text) => text.split("\n").map((line, at, { length }) => (at + 1 < length ? `${line}\n` : line));
      let tries = 0;
      for (const cell of notebook.cells) {
        const tags = cell.metadata.tags ?? [];
        tries += tags.includes("try");
        const mine = editors.find((one) =>
          one.role === "try" ? tags.includes("try") && Number(one.name) === tries : tags.includes(`answer:${one.name}`),
        );
        if (mine) cell.source = lines(mine.field.value);
      }
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(notebook, null, 1)], { type: "application/x-ipynb+json" }));
      link.download = data.notebook;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      end.textContent = `The notebook could not be fetched: ${error.message}`;
    }
  };

  // ---- Putting it together.
  const UNFIT = [
    [location.protocol === "file:", "You opened this page as a file, and from a file a browser runs no Python. Run `make serve` in the repository and open the address that it prints."],
    [typeof Worker === "undefined" || typeof WebAssembly === "undefined", "This browser cannot run Python: it has no workers or no WebAssembly."],
  ].find(([holds]) => holds)?.[1];
  const where = data.python.bundled
    ? `The first Run loads Python from this site, ${megabytes} MB or less; no other host is asked for anything.`
    : `The first Run loads Python, ${megabytes} MB or less, from ${host}: npm could not fetch it when this site was built. No other host is asked.`;
  const notes = make("div.exercise-notes");
  notes.append(make("p", UNFIT ?? `You can do this exercise here. ${where} Your code runs in this page and is sent nowhere.`));
  if (!store.works) notes.append(make("p", NOT_KEPT));
  else if (Object.keys(store.texts).length) {
    const changed = store.begunWithAnother ? " The exercise has changed since you began; Reset shows what it begins with now." : "";
    notes.append(make("p", `Your text from last time is back.${changed}`));
  }
  const keys = make("p", "In an editor Tab indents and Ctrl+Enter runs. To leave it by keyboard, press Escape and then Tab.");
  keys.id = KEYS;
  if (!UNFIT) notes.append(keys);
  article.querySelector(".cell").before(notes);
  if (UNFIT) return;

  article.querySelector(".cell.tag_bootstrap")?.remove(); // finds the package for a kernel
  for (const [cell, old] of places) {
    if (!old) throw new Error(`the page has no cell for ${cell.role} ${cell.name}`);
    if (cell.role === "elsewhere") old.append(make("p.exercise-label", "This cell needs more than the page has: run it in Colab or Jupyter."));
    else old.replaceWith(cell.role === "check" ? buildCheck(cell) : buildEditor(cell));
  }
  const end = make("p.exercise-status");
  end.setAttribute("role", "status");
  const all = button("Check everything", () => {
    if (runner.running) runner.cancel();
    else run(0, cells.length - 1, end);
  });
  all.classList.add("exercise-go");
  const save = button("Download as a notebook", download);
  const foot = make("div.exercise-foot", make("p", "Score: ", points), make("div.exercise-row", all, save), end);
  (checks.at(-1).box.closest("section") ?? article).append(foot);
  window.addEventListener("pagehide", keep);
  score();
})();
