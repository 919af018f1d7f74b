/** Options that say which orchestrator of this host is meant. */
import { text } from '../../option.js';
import type { ServeFlags } from '../../programs.js';

export const storeOptions = {
  config: text('FILE', 'configuration file; /etc/orch/orchestrator.yaml when it is there', { completes: 'file' }),
  data_dir: text('DIR', 'data directory of the orchestrator', { completes: 'file' }),
} as const;

export function storeFlags(given: {
  readonly config: string | undefined;
  readonly data_dir: string | undefined;
}): ServeFlags {
  const { config, data_dir } = given;
  return { ...(config === undefined ? {} : { config }), ...(data_dir === undefined ? {} : { data_dir }) };
}
