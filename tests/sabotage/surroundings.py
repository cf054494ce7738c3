"""Names, links, permissions and signals."""

from tests.sabotage.sabotage import Sabotage

SABOTAGES = (
    Sabotage(
        broken="A new file has the permissions of new files, whatever the old one had.",
        test="tests/trust/test_hostile_surroundings.py::test_a_file_that_is_replaced_keeps_its_permissions",
        file="io/files.py",
        before="        if mode is not None:\n            temporary.chmod(mode)\n",
        after="",
    ),
    Sabotage(
        broken="Content lies open until the file takes its name.",
        test="tests/trust/test_hostile_surroundings.py::test_a_file_that_is_replaced_keeps_its_permissions",
        file="io/files.py",
        before="0o666 if mode is None else 0o600",
        after="0o666",
    ),
    Sabotage(
        broken="What a link points to is written over.",
        test="tests/trust/test_hostile_surroundings.py::test_a_link_is_replaced_and_what_it_points_to_stays",
        file="io/files.py",
        before="        os.replace(temporary, path)\n",
        after="        os.replace(temporary, path.resolve())\n",
    ),
    Sabotage(
        broken="Locks are made through links.",
        test="tests/trust/test_hostile_surroundings.py::test_a_lock_is_not_made_through_a_link",
        file="io/files.py",
        before=" | os.O_NOFOLLOW, 0o644",
        after=", 0o644",
    ),
    Sabotage(
        broken="An error of a lock does not say where.",
        test="tests/trust/test_hostile_surroundings.py::test_a_file_system_without_locks_is_named",
        file="io/files.py",
        before='        except OSError as error:  # "no locks available", which does not say where\n',
        after="        except ZeroDivisionError as error:\n",
    ),
    Sabotage(
        broken="Brackets of a folder are taken for markup.",
        test="tests/trust/test_hostile_surroundings.py::test_names_are_shown_as_they_are_and_do_nothing_to_the_terminal",
        file="cli/compare.py",
        before='console.print(f"\\nReport: {page}", highlight=False, markup=False)',
        after='console.print(f"\\nReport: {page}", highlight=False)',
    ),
    Sabotage(
        broken="Control characters reach a redirected log.",
        test="tests/trust/test_hostile_surroundings.py::test_names_are_shown_as_they_are_and_do_nothing_to_the_terminal",
        file="runs/progress.py",
        before="print(printable(message), file",
        after="print(message, file",
    ),
    Sabotage(
        broken="The card keeps tags.",
        test="tests/trust/test_hostile_surroundings.py::test_the_card_makes_no_tag_link_or_picture_of_what_a_table_holds",
        file="tables/model_folder.py",
        before='html.escape(printable(" ".join(text.split())), quote=False)',
        after='printable(" ".join(text.split()))',
    ),
    Sabotage(
        broken="The card keeps links and pictures.",
        test="tests/trust/test_hostile_surroundings.py::test_the_card_makes_no_tag_link_or_picture_of_what_a_table_holds",
        file="tables/model_folder.py",
        before='return re.sub(r"([\\\\`*\\[\\]])", r"\\\\\\1", html',
        after="return str(html",
    ),
    Sabotage(
        broken="SIGTERM ends a command without a word.",
        test="tests/trust/test_hostile_surroundings.py::test_a_command_that_is_asked_to_end_leaves_nothing_behind",
        file="cli/main.py",
        before="    before = signal.signal(signal.SIGTERM, _end)\n",
        after="    before = signal.getsignal(signal.SIGTERM)\n",
    ),
    Sabotage(
        broken="Locks of cells stay when workers are stopped.",
        test="tests/trust/test_hostile_surroundings.py::test_a_command_that_is_asked_to_end_leaves_nothing_behind",
        file="runs/workers.py",
        before="                with ledger.claim(cell):\n                    pass\n",
        after="                pass\n",
    ),
    Sabotage(
        broken="A removed working directory is left to the libraries.",
        test="tests/trust/test_hostile_surroundings.py::test_a_working_directory_that_was_removed_is_said",
        file="cli/main.py",
        before="        _require_working_directory()\n",
        after="",
    ),
    Sabotage(
        broken="Only the own group of a process is asked for its limits.",
        test="tests/io/test_machine.py::test_the_least_of_all_limits_around_a_process_counts",
        file="io/machine.py",
        before="for part in (inner, *inner.parents):",
        after="for part in (inner,):",
    ),
    Sabotage(
        broken="The first version of control groups is not known.",
        test="tests/io/test_machine.py::test_limits_of_the_first_version_of_control_groups_count_too",
        file="io/machine.py",
        before="CGROUPS / controller / part",
        after="CGROUPS / part",
    ),
)
