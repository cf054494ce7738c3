"""The paper, claim by claim."""

from tests.sabotage.sabotage import Sabotage

PAGE = "tests/experiments/claims/test_page.py"
JUDGES = "tests/experiments/claims/test_judges.py"
KEPT = "tests/experiments/claims/test_kept.py"
COMMITTED = "tests/experiments/claims/test_committed_page.py"
LATEX = "tests/experiments/test_latex_tables.py"
RESULTS = "tests/runs/test_results.py"

SABOTAGES = (
    Sabotage(
        broken="A verdict is typed in place of computed.",
        test=f"{PAGE}::test_what_a_claim_says_follows_from_the_results",
        file="experiments/claims/page.py",
        before="        return claim.judge(cast(Evidence, evidence))",
        after='        return Finding(Verdict.CONFIRMED, claim.paper, "")',
    ),
    Sabotage(
        broken="A claim shows the paper's figure as ours.",
        test=f"{PAGE}::test_what_a_claim_says_follows_from_the_results",
        file="experiments/claims/judges.py",
        before='ours = f"{shown(own, metric)}; {rival}',
        after='ours = f"0.319 ± 0.069; {rival}',
    ),
    Sabotage(
        broken="A claim without results does not say which command gives them.",
        test=f"{PAGE}::test_a_missing_run_is_named_with_its_command",
        file="experiments/claims/page.py",
        before='return Finding(Verdict.MISSING, "–", f"run: {claim.command}")',
        after='return Finding(Verdict.MISSING, "–", "")',
    ),
    Sabotage(
        broken="A claim whose row is missing is called not confirmed.",
        test=f"{PAGE}::test_a_missing_run_is_named_with_its_command",
        file="experiments/claims/page.py",
        before='return Finding(Verdict.MISSING, "–", f"{error}; run: {claim.command}")',
        after='return Finding(Verdict.NOT_CONFIRMED, "–", f"{error}; run: {claim.command}")',
    ),
    Sabotage(
        broken="The abstract's claim is judged although an experiment was not run.",
        test=f"{PAGE}::test_the_claim_over_all_experiments_follows_from_each",
        file="experiments/claims/headline.py",
        before="    elif missing:\n        verdict = Verdict.MISSING\n",
        after="",
    ),
    Sabotage(
        broken="The abstract's claim holds although EBER is behind somewhere.",
        test=f"{PAGE}::test_the_claim_over_all_experiments_follows_from_each",
        file="experiments/claims/headline.py",
        before="    if len(behind) > all_but:\n        verdict = Verdict.NOT_CONFIRMED\n    elif missing:",
        after="    if missing:",
    ),
    Sabotage(
        broken="Being ahead without significance is called confirmed.",
        test=f"{JUDGES}::test_best_needs_every_test_and_behind_one_is_not_confirmed",
        file="experiments/claims/judges.py",
        before="    return math.isnan(p) or p >= LEVEL",
        after="    return math.isnan(p)",
    ),
    Sabotage(
        broken="Whether a method is ahead of EBER is not looked at.",
        test=f"{JUDGES}::test_best_needs_every_test_and_behind_one_is_not_confirmed",
        file="experiments/claims/judges.py",
        before="if quantity.is_better(score, mean(own))]",
        after="if math.isnan(score)]",
    ),
    Sabotage(
        broken="Any lead is called substantial.",
        test=f"{JUDGES}::test_an_improvement_is_substantial_where_it_is_half_of_the_papers",
        file="experiments/claims/judges.py",
        before="if lead >= 0.5 * there else",
        after="if lead > MEANINGFUL else",
    ),
    Sabotage(
        broken="The plain form's claim is judged by the scores of the recipe.",
        test=f"{JUDGES}::test_the_plain_form_is_judged_in_the_place_of_eber",
        file="experiments/claims/judges.py",
        before="own = evidence.by_seed(setting, row, metric)",
        after="own = evidence.by_seed(setting, EBER, metric)",
    ),
    Sabotage(
        broken="Shares of a joint fit are printed as times of the methods.",
        test=f"{RESULTS}::test_fits_side_by_side_have_no_time_and_the_caption_says_so",
        file="runs/results.py",
        before="    if experiment.fits_alone:",
        after="    if experiment.name:",
    ),
    Sabotage(
        broken="Two seeds are as good as ten.",
        test=f"{RESULTS}::test_few_seeds_are_said_with_significance",
        file="runs/wording.py",
        before="if fewest < FEW_SEEDS else",
        after="if fewest < 2 else",
    ),
    Sabotage(
        broken="Claims of the paper are judged over methods that a run added.",
        test="tests/experiments/claims/test_judges.py::test_methods_that_a_run_added_have_no_part_in_a_claim",
        file="experiments/claims/measuring.py",
        before="declared = replace(results, experiment=find_experiment(results.experiment.name))",
        after="declared = results",
    ),
    Sabotage(
        broken="Kept evidence is rounded to what a table shows.",
        test=f"{KEPT}::test_the_page_is_the_same_from_results_and_from_what_was_kept",
        file="experiments/claims/kept.py",
        before='f"{seed}:{value!r}"',
        after='f"{seed}:{value:.2f}"',
    ),
    Sabotage(
        broken="Keeping a run forgets those that were kept before.",
        test=f"{KEPT}::test_runs_are_kept_one_after_the_other",
        file="experiments/claims/kept.py",
        before="settings = dict(earlier.settings) if earlier else {}",
        after="settings: dict[str, Measured] = {}",
    ),
    Sabotage(
        broken="A run of some rows of a setting forgets the others.",
        test=f"{KEPT}::test_rows_of_one_setting_are_kept_run_by_run",
        file="experiments/claims/kept.py",
        before="series={**earlier.series, **measured.series}",
        after="series=measured.series",
    ),
    Sabotage(
        broken="Rows of different parameters are kept as one setting.",
        test=f"{KEPT}::test_rows_of_one_setting_are_kept_run_by_run",
        file="experiments/claims/kept.py",
        before='_SAME_COMPUTATION = ("version", "parameters", "data")',
        after='_SAME_COMPUTATION = ("version", "data")',
    ),
    Sabotage(
        broken="Where only some of the methods were run, these are taken for all in the agreement.",
        test=f"{KEPT}::test_agreement_is_that_of_all_methods_of_the_paper",
        file="experiments/claims/measuring.py",
        before="if not all(results.seeds(method, setting) for method in results.experiment.methods):",
        after="if False:",
    ),
    Sabotage(
        broken="Kept evidence is read without a look at its checksum.",
        test=f"{KEPT}::test_a_damaged_or_forged_file_is_refused_in_a_sentence",
        file="experiments/claims/kept.py",
        before="content = read_checksummed(path, FORMAT, VERSION, ADVICE, EvidenceFileError)",
        after='content = __import__("json").loads(path.read_text())["content"]',
    ),
    Sabotage(
        broken="A value that is no number is left out of the mean.",
        test=f"{KEPT}::test_a_damaged_or_forged_file_is_refused_in_a_sentence",
        file="experiments/claims/kept.py",
        before="    if len(values) < len(pairs):",
        after="    if not pairs:",
    ),
    Sabotage(
        broken="A run with other parameters passes for one of those that are declared.",
        test=f"{KEPT}::test_a_run_of_other_parameters_is_called_that",
        file="experiments/claims/runs.py",
        before="return AS_DECLARED if measured.parameters == declared else CHANGED",
        after="return AS_DECLARED",
    ),
    Sabotage(
        broken="The committed page is of another evidence than the one that is kept.",
        test=f"{COMMITTED}::test_the_committed_page_is_that_of_the_kept_evidence",
        file="experiments/claims/judges.py",
        before="{name} {format_p(tests[name].p_corrected)}",
        after="{name} {format_p(tests[name].p_value)}",
    ),
    Sabotage(
        broken="Whoever is ahead of EBER is called ahead by chance.",
        test=f"{JUDGES}::test_who_is_ahead_by_chance_alone_is_told_from_who_is_ahead",
        file="experiments/claims/judges.py",
        before="surely = [name for name in worse if tests[name].high < 0]",
        after="surely = [name for name in worse if tests[name].p_value > 1]",
    ),
    Sabotage(
        broken="Errors that every method makes are no errors of EBER.",
        test=f"{JUDGES}::test_errors_are_all_that_eber_is_wrong_on",
        file="experiments/claims/agreement_judges.py",
        before="wrong = {seed: 1 - accuracy[seed] for",
        after="wrong = {seed: 1 - accuracy[seed] - all_wrong[seed] for",
    ),
    Sabotage(
        broken="That no model at all is better is not said.",
        test=f"{JUDGES}::test_that_no_model_at_all_is_better_is_said",
        file="experiments/claims/judges.py",
        before="    if not quantity.is_better(floor, own):",
        after="    if quantity.is_better(own, floor) or floor != own:",
    ),
    Sabotage(
        broken="What is left of a long name is not printed.",
        test=f"{LATEX}::test_no_row_and_no_figure_of_the_paper_is_lost",
        file="report/latex.py",
        before='    rows += [_row(rf"\\quad {_latex(words)}", [""] * len(ours)) for words in rest]\n',
        after="",
    ),
    Sabotage(
        broken="A table for LaTeX is as high as it happens to be.",
        test=f"{LATEX}::test_a_table_that_is_higher_than_a_page_goes_on_in_another",
        file="report/latex.py",
        before="            if len(pages[-1]) + len(rows) > room:",
        after="            if not room:",
    ),
    Sabotage(
        broken="The paper's figures are printed for methods alone.",
        test=f"{LATEX}::test_no_row_and_no_figure_of_the_paper_is_lost",
        file="report/latex.py",
        before="    if any(paper):",
        after='    if any(paper) and line.role == "method":',
    ),
)
