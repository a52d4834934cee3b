// @ts-check
// Any question, by its kind.
import { h } from "../kit/kit.js";
import { CallQuestion, ResultQuestion } from "./asked-calls.js";
import { FormQuestion, UrlQuestion } from "./asked-forms.js";
import { SampleQuestion, SampledQuestion } from "./asked-models.js";
import { PlanQuestion } from "./asked-plan.js";
import { PinQuestion, StartQuestion } from "./asked-servers.js";

const KINDS = {
  call: CallQuestion,
  plan: PlanQuestion,
  result: ResultQuestion,
  form: FormQuestion,
  url: UrlQuestion,
  sample: SampleQuestion,
  sampled: SampledQuestion,
  start: StartQuestion,
  pin: PinQuestion,
};

/** @param {{question: any}} props */
export function Question({ question }) {
  const Kind = KINDS[/** @type {keyof typeof KINDS} */ (question.type)];
  return Kind ? h(/** @type {any} */ (Kind), { key: question.id, question }) : null;
}
