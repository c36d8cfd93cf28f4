(function (exports, require, module, native) {
  'use strict';
  const readline = require('readline');
  const { promisify } = require('util');
  class Interface extends readline.Interface {
    question(query, options) { return readline.Interface.prototype.question[promisify.custom].call(Object.create(this, { question: { value: readline.Interface.prototype.question.bind(this) } }), query, options); }
  }
  class Readline {
    #stream; #parts = [];
    constructor(stream) { this.#stream = stream; }
    #add(fn, ...args) { fn({ write: (text) => this.#parts.push(text) }, ...args); return this; }
    clearLine(way) { return this.#add(readline.clearLine, way); }
    clearScreenDown() { return this.#add(readline.clearScreenDown); }
    cursorTo(x, y) { return this.#add(readline.cursorTo, x, y); }
    moveCursor(x, y) { return this.#add(readline.moveCursor, x, y); }
    commit() { return new Promise((resolve) => this.#stream.write(this.#parts.splice(0).join(''), () => resolve())); }
    rollback() { this.#parts = []; return this; }
  }
  Object.assign(exports, { Interface, Readline, createInterface: (...args) => new Interface(...args) });
})
