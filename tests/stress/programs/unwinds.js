// Exceptions of threads, one of which is terminated by another.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const zlib = require('zlib');
function fails(n) { if (n % 3 == 0) throw new Error('three'); return n; }
function work() {
  let s = zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(100000, 'abc'))).length;
  for (let i = 0; i < 3000; i++) try { s += fails(i); } catch (e) { s -= i; }
  return s;
}
async function main() {
  const workers = [1, 2, 3].map(() => new Worker(__filename));
  const results = await Promise.all(workers.map(w => new Promise((ok, no) => w.on('message', ok).on('error', no))));
  const endless = new Worker('while (true) {}', { eval: true });
  await new Promise(ok => endless.on('online', ok));
  await endless.terminate();
  console.log('ended with', results.reduce((a, b) => a + b));
  process.exit(7);
}
if (isMainThread) main(); else parentPort.postMessage(work());
