/** The argument that names a maintenance window. */
import { argument } from '../../argument.js';

export const windowArgument = argument('ID', 'its ID, as "orch maintenance list" shows it', 'window');
