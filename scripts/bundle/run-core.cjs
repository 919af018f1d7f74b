/** Runs a few commands that come as far as the connection, which is refused, and writes the compiled code to standard output. */
const { Writable } = require('node:stream');

const [directory, dispatchFile] = process.argv.slice(2);
const core = require(`${directory}/core.js`);
const { dispatch } = core(dispatchFile);

const SERVER = ['--url', 'https://127.0.0.1:1', '--tls-fingerprint', '0'.repeat(64)];
const COMMANDS = [
  ['agents', 'list', ...SERVER],
  ['term', 'node', ...SERVER],
  ['__complete', ...SERVER, '--', 'agents', 'show', 'n'],
];
const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const clock = { now: () => Date.now(), monotonic: () => Number(process.hrtime.bigint()) / 1e6 };
const env = { HOME: '/nonexistent', ORCH_TOKEN: 'none' };

async function main() {
  for (const name of core.names) core(name);
  for (const argv of COMMANDS) {
    await dispatch({ argv, env, stdin: process.stdin, stdout: nowhere, stderr: nowhere, programs: {}, clock });
  }
  process.stdout.write(core.script.createCachedData());
}

void main();
