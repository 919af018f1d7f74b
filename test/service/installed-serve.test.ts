import { describe, expect, it } from 'vitest';
import { parseServe } from '../../src/service/installed-serve.js';

const shown = (words: string, load = 'loaded') =>
  `LoadState=${load}\nExecStart={ path=/usr/bin/orch ; argv[]=${words} ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }\n`;

describe('the service of the orchestrator', () => {
  it.each<[string, string, object | null]>([
    [
      'that orch installs',
      shown('/usr/bin/orch serve --data-dir /var/lib/orch --ready-file /run/orch/ready.json'),
      { data_dir: '/var/lib/orch' },
    ],
    [
      'with its own settings',
      shown('/opt/orch serve --config=/srv/orch.yaml --data-dir=/srv/orch --store postgres://db/orch'),
      { config: '/srv/orch.yaml', data_dir: '/srv/orch', store: 'postgres://db/orch' },
    ],
    ['without a data directory', shown('/usr/bin/orch serve'), null],
    ['that is not there', 'LoadState=not-found\nExecStart=\n', null],
    ['that is masked', 'LoadState=masked\n', null],
  ])('%s is read', (_, text, flags) => {
    expect(parseServe(text)?.flags ?? null).toEqual(flags);
  });
});
