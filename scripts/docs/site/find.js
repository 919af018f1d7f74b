/** The search of the site: ranks sections for a question in anybody's words. */
import { formOf, SEARCH_OPTIONS } from './search-options.js';

/** Words that questions have and answers do not need. */
const FILLERS = new Set(
  (
    'a about ad all an and any are as at be by can could did do does each every for from get give happen happens has have how i if in into is ' +
    'it its make many may me my of off on one only or orch our own please set should some that the their them there they this to use ' +
    'want was way we what when where which will with without you your'
  ).split(' '),
);

/** Words that mean the same to people who look for something; the answer has one of each line. */
const SYNONYMS = [
  'account user useradd login',
  'adhoc hoc command exec execute run shell',
  'alert notification notify channel slack discord email mail webhook',
  'apt deb debian ppa',
  'authorized pubkey',
  'availability ha failover redundancy cluster',
  'blue canary rollout deployment gradual',
  'cron crontab timer schedule scheduled periodic nightly',
  'container docker podman image',
  'copy send transfer upload scp deploy push',
  'crash crashed dead die dies died down fail outage lost gone unavailable',
  'delete remove decommission uninstall retire drop',
  'directory folder',
  'dry noop preview plan check whatif',
  'environment prod production dev development staging stage per',
  'expose exposed internet public safe secure',
  'foreach iterate loop repeat items many',
  'forget forgot forgotten lost lose',
  'gitlab github action ci pipeline jenkins workflow merge',
  'gui ui interface dashboard frontend',
  'handler notify restart reload',
  'host machine node server agent',
  'include import reuse split',
  'kernel sysctl modprobe',
  'kubernetes k8s helm pod',
  'ldap oidc saml sso keycloak okta authentik google single',
  'log syslog siem splunk',
  'offline off disconnected appear unreachable',
  'package install',
  'parameter setting sysctl',
  'password secret vault credential',
  'permission rbac right role access acl limited readonly',
  'prometheus grafana metric monitoring',
  'proxy nginx caddy haproxy traefik',
  'read viewer readonly',
  'repo repository source',
  'restore recover recovery backup disaster',
  'revert rollback undo back earlier previous',
  'scale scaling sizing manage maximum',
  'symlink symbolic ln',
  'template jinja liquid erb',
  'tls ssl https certificate acme letsencrypt',
  'upgrade update updating',
  'variable var value input hiera pillar differs',
  'changed change history edited modified',
].map((line) => line.split(' ').map(formOf));

/** What a synonym counts beside the word itself. */
const SYNONYM_WEIGHT = 0.45;

/** Pages for those who develop orch, and texts that hold every word, come after the others. */
const LESS =
  /^(CHANGELOG|ARCHITECTURE|CONTRIBUTING|LICENSE|readme|api|examples\/|protocols\/|reference\/events|module-messages|errors)/;
/** Pages that answer questions. */
const MORE = /^(how-do-i|faq)\.html/;

/** What a section whose heading is the question counts beside others, and a page whose title is. */
const NAMED = { section: 3, page: 6 };

/** Results of one page that come before those of others. */
const OF_A_PAGE = 2;

/**
 * Returns the sections that answer a question, the best first: those with most of its words, in their headings if possible.
 * @param {import('minisearch').default} index
 * @param {string} question
 * @param {number} count
 */
export function find(index, question, count) {
  const words = tellingWords(question);
  const sections = new Map();
  for (const word of words) {
    for (const section of sectionsWith(index, word)) {
      const known = sections.get(section.id) ?? { section, score: 0, words: 0 };
      known.score += section.score;
      known.words += 1;
      sections.set(section.id, known);
    }
  }
  const asked = new Set(words);
  const weight = ({ section: { id, title, heading }, score, words: matched }) => {
    const [name, ifNamed] = heading === '' ? [title, NAMED.page] : [heading, NAMED.section];
    const named = new Set(tellingWords(name));
    const isAsked = named.size === asked.size && words.every((word) => named.has(word));
    return score * (matched / words.length) ** 2 * weightOf(id) * (isAsked ? ifNamed : 1);
  };
  const ranked = [...sections.values()].map((found) => ({ section: found.section, weight: weight(found) }));
  ranked.sort((a, b) => b.weight - a.weight);
  return varied(ranked.map(({ section }) => section)).slice(0, count);
}

/** Returns the words that tell what is asked for; all words if none does. */
function tellingWords(text) {
  const all = SEARCH_OPTIONS.tokenize(text).map((word) => word.toLowerCase());
  const telling = all.filter((word) => !FILLERS.has(word));
  return (telling.length === 0 ? all : telling).map(formOf);
}

function sectionsWith(index, word) {
  const terms = new Set([word, ...SYNONYMS.filter((line) => line.includes(word)).flat()]);
  const boostTerm = (term) => (term === word ? 1 : SYNONYM_WEIGHT);
  const found = index.search([...terms].join(' '), { boostTerm, tokenize: (text) => text.split(' ') });
  // A word that nobody wrote is taken for a misspelt one.
  return found.length > 0 ? found : index.search(word, { fuzzy: 0.25 });
}

const weightOf = (id) => (LESS.test(id) ? 0.3 : MORE.test(id) ? 1.4 : 1);

/** Puts further sections of a page behind those of other pages. */
function varied(sections) {
  const counts = new Map();
  const [first, rest] = [[], []];
  for (const section of sections) {
    const [page = ''] = section.id.split('#');
    const count = (counts.get(page) ?? 0) + 1;
    counts.set(page, count);
    (count > OF_A_PAGE ? rest : first).push(section);
  }
  return [...first, ...rest];
}
