// A text field for Python: Tab indents, Enter keeps the indentation, Ctrl+Enter runs. Escape gives Tab back to the
// keyboard's user for the next press, so that the field is no trap.
"use strict";

window.onelaunch = window.onelaunch || {};

window.onelaunch.makeEditor = (name, text, { onInput, onRun }) => {
  const INDENT = "    ";
  const field = document.createElement("textarea");
  field.className = "code-field";
  field.value = text;
  field.wrap = "off";
  field.spellcheck = false;
  for (const nothing of ["autocapitalize", "autocomplete", "autocorrect"]) field.setAttribute(nothing, "off");
  field.setAttribute("aria-label", name);
  let leaving = false; // the next Tab moves on

  // As if typed: the browser's own undo knows of it.
  const type = (start, end, words) => {
    field.setSelectionRange(start, end);
    const typed = words ? document.execCommand("insertText", false, words) : document.execCommand("delete");
    if (!typed) {
      field.setRangeText(words, start, end, "end");
      field.dispatchEvent(new Event("input"));
    }
  };

  const shift = (back) => {
    const { selectionStart: start, selectionEnd: end, value } = field;
    if (!back && start === end) {
      const column = start - (value.lastIndexOf("\n", start - 1) + 1);
      type(start, end, INDENT.slice(column % INDENT.length));
      return;
    }
    const first = value.lastIndexOf("\n", start - 1) + 1;
    const lines = value.slice(first, end).split("\n");
    const moved = lines.map((line) => (back ? line.replace(/^ {1,4}/, "") : line && INDENT + line));
    if (moved.join("\n") === lines.join("\n")) return;
    type(first, end, moved.join("\n"));
    if (lines.length > 1) field.setSelectionRange(first, first + moved.join("\n").length);
    else field.setSelectionRange(Math.max(first, start + moved[0].length - lines[0].length), field.selectionEnd);
  };

  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    } else if (event.key === "Escape") {
      leaving = true;
    } else if (event.key === "Tab" && !leaving && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      shift(event.shiftKey);
    } else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      const { selectionStart: start, value } = field;
      const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
      const deeper = /:\s*(#.*)?$/.test(line) ? INDENT : "";
      type(start, field.selectionEnd, "\n" + line.match(/^ */)[0] + deeper);
    } else if (event.key !== "Shift") {
      leaving = false;
    }
  });
  field.addEventListener("blur", () => {
    leaving = false;
  });

  const fit = () => {
    field.rows = Math.min(40, Math.max(3, field.value.split("\n").length + 1));
  };
  field.addEventListener("input", () => {
    fit();
    onInput();
  });
  fit();
  return field;
};
