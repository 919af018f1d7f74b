/** Settings of `orch serve` for tests: the defaults, and what differs. */
import { SERVE_SETTINGS, type Settings } from '../../src/settings/serve.js';
import { defaultsOf } from '../../src/settings/setting.js';

export const serveSettings = (own: Partial<Settings> = {}): Settings => ({ ...defaultsOf(SERVE_SETTINGS), ...own });
