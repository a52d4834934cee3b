// Makes every server of this process that names no address listen on 127.0.0.1 only: the suite's
// mock servers are nobody else's business. It has to be done this deep: a host given to `listen` is
// looked up first, and the suite reads the port before that is over.
"use strict";

const { Server } = require("node:net");

const bind = Server.prototype._listen2;

Server.prototype._listen2 = function (address, port, family, ...rest) {
  return address === null && port >= 0
    ? bind.call(this, "127.0.0.1", port, 4, ...rest)
    : bind.call(this, address, port, family, ...rest);
};
