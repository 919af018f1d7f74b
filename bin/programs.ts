/** The long-running programs; each is loaded when it is called. */
import type { Programs } from '../src/cli/programs.js';

export const programs: Programs = {
  serve: async (flags) => {
    // Until the orchestrator takes it as "read the configuration again", a SIGHUP must not end the start.
    process.on('SIGHUP', () => undefined);
    return (await import('./serve.js')).serve(flags);
  },
  rotateSecretsKey: async (flags) => (await import('./rotate-secrets-key.js')).rotateSecretsKey(flags),
  clock: async (flags, accept) => (await import('./serve-clock.js')).serveClock(flags, accept),
  store: {
    backup: async (request) => (await import('./store.js')).backup(request),
    restore: async (request) => (await import('./store.js')).restore(request),
    recoverAdmin: async (request) => (await import('./store.js')).recoverAdmin(request),
  },
  agent: {
    connect: async (flags) => (await import('./agent.js')).connect(flags),
    listen: async (flags) => (await import('./agent.js')).listen(flags),
    status: async (flags) => (await import('./agent.js')).status(flags),
    repin: async (flags) => (await import('./agent.js')).repin(flags),
    whatLeaves: async (flags) => (await import('./agent.js')).whatLeaves(flags),
    leave: async (flags) => (await import('./agent.js')).leave(flags),
    configSchema: async () => (await import('./agent.js')).configSchema(),
  },
  local: async (flags) => (await import('./local.js')).local(flags),
  quickstart: async (flags) => (await import('./quickstart/quickstart.js')).quickstart(flags),
};
