// Preloaded into agents that run on Node: a connection to anything but loopback is refused at once.
// Some take proxy variables for every address, NO_PROXY or not, so those cannot hold them back.
const net = require("node:net");

const connect = net.Socket.prototype.connect;
const near = new Set(["127.0.0.1", "::1", "localhost", undefined]);

net.Socket.prototype.connect = function (...given) {
  const first = Array.isArray(given[0]) ? given[0][0] : given[0];
  const host = typeof first === "object" ? first.host : given[1];
  if (near.has(typeof host === "function" ? undefined : host)) return connect.apply(this, given);
  process.nextTick(() => this.destroy(new Error(`${host} is not loopback`)));
  return this;
};
