/**
 * Identifies the rules by which this build accepts modules, for results that are kept between runs. The bundle contains a
 * hash of the language's code here (`scripts/bundle.mjs`), so a changed rule is enough to check a kept module again.
 */
import { VERSION } from '../kernel/version.js';

export const RULES_VERSION: string = VERSION;
