/** The argument that names an operation. */
import { argument } from '../../argument.js';

export const operationArgument = argument('ID', 'operation ID, as "orch ops" shows it', 'operation');
