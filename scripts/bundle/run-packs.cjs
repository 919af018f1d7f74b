/** Runs a few commands of each pack, some as far as a connection that is refused, and writes the compiled code. */
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { Writable } = require('node:stream');

const { directory, entries, targets, scratch } = JSON.parse(process.argv[2]);
const packs = Object.fromEntries(Object.keys(targets).map((name) => [name, () => require(`${directory}/${name}.js`)]));
const { dispatch } = packs.core()(entries.dispatch);

const SERVER = ['--url', 'https://127.0.0.1:1', '--tls-fingerprint', '0'.repeat(64)];
const tree = join(scratch, 'tree');
const site = join(scratch, 'site.orch.yaml');
const LOCAL = ['--local', '-f', site, '--data-dir', join(scratch, 'data')];

/** In order: the commands to run, and the packs that are then compiled. */
const STAGES = [
  { packs: ['core'], commands: [['--help'], ['__complete', '--', 'agents', 'sh']] },
  {
    packs: ['client'],
    commands: [
      ['agents', 'list', ...SERVER],
      ['__complete', ...SERVER, '--', 'agents', 'show', 'n'],
    ],
  },
  { packs: ['terminal'], commands: [['term', 'node', ...SERVER]] },
  {
    packs: ['schemas', 'kinds', 'language', 'local'],
    commands: [
      ['module', 'validate', site],
      ['plan', ...LOCAL],
      ['apply', '--yes', ...LOCAL],
      ['plan', ...LOCAL],
      ['apply', '--yes', ...LOCAL],
    ],
  },
];

mkdirSync(tree);
writeFileSync(
  site,
  `name: site
supports:
${['linux', 'macos', 'windows'].map((platform) => `  - platform: ${platform}\n`).join('')}resources:
  - resource:
      directory-unix: {path: ${tree}, mode: "0755"}
  - id: a
    resource:
      file-unix: {path: ${tree}/a, content: "a\\n"}
  - resource:
      file-unix: {path: ${tree}/b, content: "\${{ agent.name }}\\n", mode: "0644"}
    depends_on: [a]
`,
);

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const clock = { now: () => Date.now(), monotonic: () => Number(process.hrtime.bigint()) / 1e6 };
const env = { HOME: '/nonexistent', ORCH_TOKEN: 'none' };
const umask = process.umask();
const programs = { local: (flags) => packs.local()(entries.local).local(flags) };

async function main() {
  for (const { packs: names, commands } of STAGES) {
    for (const load of names.map((name) => packs[name]())) {
      for (const module of load.names) load(module);
    }
    for (const argv of commands) {
      await dispatch({ argv, env, stdin: process.stdin, stdout: nowhere, stderr: nowhere, programs, clock });
    }
    // `--local` has denied access to all files that this process writes.
    process.umask(umask);
    for (const name of names) writeFileSync(join(directory, targets[name]), packs[name]().script.createCachedData());
  }
}

void main();
