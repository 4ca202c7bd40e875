// What the reader wrote into an exercise, kept by the browser if it lets us.
"use strict";

window.onelaunch = window.onelaunch || {};

window.onelaunch.Store = class Store {
  static VERSION = 1; // of what is stored; another version's is left out of account and written over

  // key: the exercise. release: a hash of its cells, so that a change of the exercise can be told.
  constructor(key, release) {
    this.place = `onelaunch.exercise.${key}`;
    this.release = release;
    this.found = {};
    this.works = true;
    try {
      localStorage.setItem(`${this.place}.try`, "");
      localStorage.removeItem(`${this.place}.try`);
      const found = JSON.parse(localStorage.getItem(this.place));
      if (found?.version === Store.VERSION) this.found = found;
    } catch (error) {
      this.works = error instanceof SyntaxError; // no JSON, which is no reason to keep nothing
    }
  }

  // Of last time: cell -> text. Only cells that differ from how they began.
  get texts() {
    return this.found.texts ?? {};
  }

  get begunWithAnother() {
    return Object.keys(this.texts).length > 0 && this.found.release !== this.release;
  }

  // Whether it was kept.
  keep(texts) {
    const begun = this.begunWithAnother && Object.keys(texts).length ? this.found.release : this.release;
    try {
      localStorage.setItem(this.place, JSON.stringify({ version: Store.VERSION, release: begun, texts }));
    } catch {
      this.works = false;
    }
    return this.works;
  }
};
