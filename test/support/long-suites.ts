/**
 * What `npm test` leaves to `npm run test:long`, by the part that runs it: suites that take minutes, or that repeat with every case what
 * a shorter suite proves with a few.
 */

interface LongSuites {
  /** Globs below `test/`. */
  readonly suites: readonly string[];
  /** Why `npm test` leaves them out, and what it runs instead. */
  readonly why: string;
  /** `npm test` runs them too, with fewer cases. */
  readonly isShortened?: true;
}

const PARTS: Readonly<Record<string, readonly LongSuites[]>> = {
  'kinds on machines': [
    {
      suites: ['hosts/{accounts,cron,git,mounts,services,symlinks,system,system-choices,timers}.test.ts'],
      why: 'all fields, refusals and removals of kinds of which hosts/every-kind has a round, and resources/cases the decisions',
    },
    {
      suites: [
        'hosts/{absences,archives,directory-trees,edits,file-checks,file-contents,files,purges,scripts}.test.ts',
      ],
      why: 'all fields and hostile cases of kinds of which hosts/every-kind has a round, and agent/converge and agent/host the cases',
    },
    {
      suites: ['hosts/{packages,repositories}-apt.test.ts'],
      why: 'locks, holds, conflicts and failing scripts of apt; hosts/every-kind has a round, and resources/cases the decisions',
    },
    {
      suites: ['hosts/{packages,repositories}-dnf.test.ts', 'hosts/package-files.test.ts'],
      why: 'they need an image of their own, and dnf computes for seconds in each command; resources/cases has the decisions',
    },
    {
      suites: ['hosts/openrc.test.ts'],
      why: 'it needs an image of its own; resources/cases has the decisions, and hosts/every-kind a round of services of systemd',
    },
    {
      suites: ['hosts/{examples,roles,how-do-i,eight-jobs}.test.ts'],
      why: 'examples with the programs of Debian, in an image of their own; examples.test.ts plans each of them',
    },
  ],
  machines: [
    {
      suites: ['hosts/*guide*.test.ts', 'hosts/upgrade.test.ts', 'long/{install-*,agent-upgrade}.test.ts'],
      why: 'guides, installations and upgrades on booted machines, which take minutes each',
    },
    {
      suites: ['hosts/install.test.ts'],
      why: 'every way to install and to remove, on an image without Node; service/ proves the units and what is left',
    },
    {
      suites: ['hosts/agent.test.ts'],
      why: 'a service that is stopped, killed and restarted at awkward moments; hosts/first-loop has one that works, agent/ the moments',
    },
    {
      suites: ['hosts/confirm.test.ts'],
      why: 'an undone apply of every kind; agent/snapshot proves what is saved and undone, and engine/confirm when',
    },
    {
      suites: ['hosts/{ssh-proxy,terminal-shells}.test.ts'],
      why: 'programs that few machines have, or lack; forward/, agent/terminal/ and hosts/terminal prove the way to them',
    },
    { suites: ['long/postgres-lost-machine.test.ts'], why: 'it waits until TCP gives up a lost machine' },
    {
      suites: ['long/ephemeral.test.ts'],
      why: 'it waits until a machine has been away for five minutes; fleet/ephemeral has the rules',
    },
  ],
  'random cases': [
    {
      suites: [
        'agent/{converge/any-module,converge/converge,host/commit,host/observe,journal/journal}.test.ts',
        'audit/audit-{feed,reader}.test.ts',
        'auth/sessions.test.ts',
        'cli/{adopt-resource,exec-output}.test.ts',
        'client/terminal/terminal-connection.test.ts',
        'core/{audit-log,rights}.test.ts',
        'database/agents.test.ts',
        'engine/{local-verdicts,rollout-model}.test.ts',
        'fleet/shown-agents.test.ts',
        'kernel/walk.test.ts',
        'language/{checks-properties,inputs,loops,properties,templates}.test.ts',
        'maintenance/windows.test.ts',
        'secrets/rendering.test.ts',
        'terminal/protocol/backlog.test.ts',
      ],
      why: 'five times as many random cases',
      isShortened: true,
    },
    { suites: ['api/fuzz.test.ts'], why: 'more random requests (ORCH_FUZZ_RUNS)', isShortened: true },
    {
      suites: ['cli/terminal/prediction/predicted-echo.test.ts'],
      why: 'more random sessions (ORCH_PREDICTION_RUNS)',
      isShortened: true,
    },
  ],
  terminals: [
    { suites: ['long/terminal-*.test.ts'], why: 'floods, kills and cycles of terminals, which take minutes each' },
    {
      suites: ['cli/terminal/prediction/real-programs.test.ts'],
      why: 'ten times as many sessions with real programs',
      isShortened: true,
    },
    {
      suites: ['terminal/recordings/crash.test.ts'],
      why: 'more kills of a process that records',
      isShortened: true,
    },
    {
      suites: ['e2e/{exec,forward-agents,forward-links}.test.ts'],
      why: 'silence on a link, which is noticed after half a minute; client/ and terminal/relay prove the same by a manual clock',
      isShortened: true,
    },
    {
      suites: ['e2e/copy{,-edges}.test.ts'],
      why: 'each cut in both directions, gigabytes and ten thousand files',
      isShortened: true,
    },
  ],
  load: [
    {
      suites: ['long/{bare-fleet,crash,rollout-kills,soak}.test.ts'],
      why: 'ten thousand applies, and kills at every moment, which take minutes each',
    },
    { suites: ['benchmarks.test.ts'], why: 'all rows; `npm test` measures those of a few parts', isShortened: true },
  ],
  faults: [
    {
      suites: ['faults/releases.test.ts'],
      why: 'it builds earlier releases; stored-formats, database/upgrades and e2e/older-agent prove that this one reads what they wrote',
    },
    {
      suites: ['faults/rounds.test.ts'],
      why: 'every fault; `npm test` has one of each kind, because a fault and its checks take seconds of the processor',
      isShortened: true,
    },
    {
      suites: ['agent/engine/engine-thread.test.ts', 'backup/crash.test.ts', 'e2e/lost-answers.test.ts'],
      why: 'more moments of a kill, and more requests whose answer is lost',
      isShortened: true,
    },
    {
      suites: ['e2e/postgres.test.ts'],
      why: 'standbys, slow and silent networks; `npm test` kills the server under load and fills its disk',
      isShortened: true,
    },
  ],
};

const globs = (all: readonly LongSuites[]): readonly string[] =>
  all.flatMap(({ suites }) => suites.map((suite) => `test/${suite}`));

/** The suites of each part of `npm run test:long`, by its name. */
export const LONG_PARTS: readonly (readonly [name: string, include: readonly string[]])[] = Object.entries(PARTS).map(
  ([name, suites]) => [name, globs(suites)],
);

/** The suites that `npm test` does not run at all. */
export const ONLY_LONG: readonly string[] = Object.values(PARTS).flatMap((part) =>
  globs(part.filter(({ isShortened }) => isShortened !== true)),
);

/** The suites of which `npm test` runs a few cases. */
export const SHORTENED: readonly string[] = Object.values(PARTS).flatMap((part) =>
  globs(part.filter(({ isShortened }) => isShortened === true)),
);
