#!/usr/bin/env node
import type { CliOptions } from '../src/cli/cli-options.js';
import { runCli } from '../src/cli/run.js';
/** Composition root of the command: gives the process and the lazily loaded programs to the command line. */
import type { Programs } from '../src/programs/programs.js';
import { ignoreLostTerminal, releaseLostTerminal } from './lost-terminal.js';
import { systemClock } from './this-process.js';

/** The programs that are no API client. Each is loaded when it is called. */
const programs: Programs = {
  serve: async (flags) => {
    // SIGHUP must not end the process before the orchestrator handles it as "reload the configuration".
    process.on('SIGHUP', () => undefined);
    return (await import('./serve.js')).serve(flags);
  },
  rotateSecretsKey: async (flags) => (await import('./serve-requests.js')).rotateSecretsKey(flags),
  clock: async (flags, accept) => (await import('./serve-requests.js')).serveClock(flags, accept),
  store: {
    backup: async (request) => (await import('./store.js')).backup(request),
    restore: async (request) => (await import('./store.js')).restore(request),
    recoverAdmin: async (request) => (await import('./store.js')).recoverAdmin(request),
    copy: async (request) => (await import('./store.js')).copy(request),
  },
  agent: {
    connect: async (flags) => (await import('./agent.js')).connect(flags),
    listen: async (flags) => (await import('./agent.js')).listen(flags),
    status: async (flags) => (await import('./agent.js')).status(flags),
    repin: async (flags) => (await import('./agent.js')).repin(flags),
    planLeave: async (flags) => (await import('./agent.js')).planLeave(flags),
    leave: async (flags) => (await import('./agent.js')).leave(flags),
    configSchema: async () => (await import('./agent.js')).configSchema(),
  },
  service: {
    planServe: async () => (await import('./service.js')).service.planServe(),
    isUnknownName: async (host) => (await import('./service.js')).service.isUnknownName(host),
    installServe: async (request) => (await import('./service.js')).service.installServe(request),
    uninstallServe: async () => (await import('./service.js')).service.uninstallServe(),
    installAgent: async (request) => (await import('./service.js')).service.installAgent(request),
    uninstallAgent: async (options) => (await import('./service.js')).service.uninstallAgent(options),
  },
  doctor: async () => (await import('./doctor.js')).examineMachine(),
  local: async (flags) => (await import('./local.js')).local(flags),
  quickstart: async (flags) => (await import('./quickstart/quickstart.js')).quickstart(flags),
};

process.on('exit', releaseLostTerminal);
let stdin: NodeJS.ReadStream | null = null;
// Exit status Node uses when the event loop empties before the promise settles.
process.exitCode = 13;
const options: CliOptions = {
  argv: process.argv.slice(2),
  env: process.env,
  // Getters, because Node opens a stream at its first use.
  get stdin() {
    stdin ??= ignoreLostTerminal(process.stdin);
    return stdin;
  },
  get stdout() {
    return process.stdout;
  },
  get stderr() {
    return process.stderr;
  },
  programs,
  clock: systemClock,
};
void runCli(options).then((status) => {
  process.exitCode = status;
});
