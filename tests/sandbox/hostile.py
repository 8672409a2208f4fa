"""Programs that want more than to compute.

`ESCAPES` leave 'ESCAPED' where nothing but the system calls is in their way: without the filter
each of them does what it wants. They reach the interpreter's modules by the usual tricks, so no
list of names or modules stops them. `BOUNDED` are about time, memory, output and the runner itself:
each says how it must end.

In both, PATH is replaced by the name of a file that holds `TOP SECRET`, and that everybody may read
and write.
"""

import re

SECRET = "TOP SECRET"

REACH = """
sys = next(c for c in object.__subclasses__() if c.__name__ == '_wrap_close').__init__.__globals__['sys']
os, posix, ctypes, builtins = (sys.modules[name] for name in ('os', 'posix', 'ctypes', 'builtins'))
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.syscall.restype = ctypes.c_long
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def must(value):
    if value == -1:
        raise OSError(ctypes.get_errno(), 'refused')
    return value
"""

_ESCAPES = {
    # files
    "open": "assert open(PATH).read() == 'TOP SECRET'",
    "open_for_writing": "open(PATH, 'a').write('')",
    "io_open": "import io\nassert io.open(PATH).read() == 'TOP SECRET'",
    "io_fileio": "import io\nassert io.FileIO(PATH).read() == b'TOP SECRET'",
    "io_open_code": "import io\nassert io.open_code(PATH).read() == b'TOP SECRET'",
    "os_open": "assert os.read(os.open(PATH, os.O_RDONLY), 99) == b'TOP SECRET'",
    "posix_open": "assert posix.read(posix.open(PATH, posix.O_RDONLY), 99) == b'TOP SECRET'",
    "libc_open": "must(libc.open(PATH.encode(), 0))",
    "libc_openat2": "must(libc.syscall(437, -100, PATH.encode(), (ctypes.c_uint64 * 3)(), 24))",
    "open_by_another_thread_of_names": "assert vars(builtins)['op' + 'en'](PATH).read() == 'TOP SECRET'",
    "loader_get_data": "import json\nassert json.__loader__.get_data(PATH) == b'TOP SECRET'",
    "import_machinery": (
        "sys.path.insert(0, os.path.dirname(PATH))\n__builtins__['__import__'] = "
        "builtins.__import__\nimport lying_around"
    ),
    "stat": "os.stat(PATH)",
    "list_a_folder": "os.listdir('/')",
    "rename": "os.rename(PATH, PATH)",
    "touch": "os.utime(PATH)",
    "chmod": "os.chmod(PATH, 0o666)",
    "truncate": "os.truncate(PATH, 10)",
    "hard_link": "os.link(PATH, PATH + '.link'); os.unlink(PATH + '.link')",
    "change_directory": "os.chdir('/')",
    "working_directory": "os.getcwd()",
    "own_memory_as_a_file": "open('/proc/self/mem', 'rb')",
    "memory_of_the_parent": "open(f'/proc/{os.getppid()}/status').read()",
    "memfd": "os.memfd_create('x')",
    "pipe": "os.pipe()",
    "duplicate_the_output": "os.dup(1)",
    "close_the_output": "os.dup2(os.dup(1), 77); os.close(77)",
    "terminal": "os.openpty()",
    # network
    "socket": "must(libc.socket(2, 1, 0))",
    "unix_socket": "must(libc.socket(1, 1, 0))",
    "netlink": "must(libc.socket(16, 3, 0))",
    "socketpair": "must(libc.socketpair(1, 1, 0, (ctypes.c_int * 2)()))",
    # processes
    "fork": "os.fork() or os._exit(0)\nos.wait()",
    "vfork_and_exec": "assert os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1] == 0",
    "system": "assert os.system('true') == 0",
    "popen": "assert os.popen('echo x').read() == 'x\\n'",
    "thread": "sys.modules['_thread'].start_new_thread(len, ('',))",
    "signal_the_parent": "os.kill(os.getppid(), 0)",
    "signal_everybody": "os.killpg(0, 0)",
    "pidfd": "os.pidfd_open(os.getppid())",
    "parents_number": "assert must(libc.getppid()) > 0",
    "ptrace": "must(libc.ptrace(0, 0, 0, 0))",
    "read_another_memory": "must(libc.process_vm_readv(os.getpid(), None, 0, None, 0, 0))",
    "new_session": "os.getsid(0)",
    "priority": "os.setpriority(0, 0, 19)",
    "affinity": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "wait_for_ever_for_a_signal": "must(libc.alarm(0)); must(libc.usleep(1))",
    # rights, limits and the kernel's larger surfaces
    "raise_a_limit": "must(libc.getrlimit(0, (ctypes.c_ulong * 2)()))",
    "dumpable_again": "must(libc.prctl(4, 1, 0, 0, 0))",
    "no_more_death_signal": "must(libc.prctl(1, 0, 0, 0, 0))",
    "another_filter": "must(libc.prctl(21, 0, 0, 0, 0))",
    "personality": "must(libc.personality(0xffffffff))",
    "host_name": "os.uname()",
    "user": "must(libc.getuid())",
    "system_information": "must(libc.sysinfo((ctypes.c_char * 512)()))",
    "executable_memory": "must(libc.mmap(None, 4096, 7, 0x22, -1, 0))",
    "memory_made_executable": (
        "must(libc.mprotect(ctypes.c_void_p(must(libc.mmap(None, 4096, 3, 0x22, -1, 0))), 4096, 5))"
    ),
    "futex_wait": "word = ctypes.c_int(1)\nlibc.syscall({'x86_64': 202, 'aarch64': "
    "98}[sys.implementation._multiarch.split('-')[0]], "
    "ctypes.byref(word), 0, 2, None)\nassert ctypes.get_errno() == 11",
    "write_elsewhere": "must(libc.write(3, b'', 0) if libc.dup2(1, 3) == 3 else -1)",
    "timer": "must(libc.timer_create(1, None, (ctypes.c_long * 8)()))",
    "shared_memory": "libc.shmctl(must(libc.shmget(0, 4096, 0o1600)), 0, None)",
    "message_queue": "libc.msgctl(must(libc.msgget(0, 0o1600)), 0, None)",
    "inotify": "must(libc.inotify_init())",
    "epoll": "must(libc.epoll_create(1))",
    "eventfd": "os.eventfd(0)",
    "random_device": "open('/dev/urandom', 'rb').read(1)",
    # through modules that an ordinary program may import
    "imported_os": "import os as own\nassert own.read(own.open(PATH, own.O_RDONLY), 99) == b'TOP SECRET'",
    "path_read_text": "from pathlib import Path\nassert Path(PATH).read_text() == 'TOP SECRET'",
    "path_write_text": "from pathlib import Path\nPath(PATH + '.made').write_text('x')",
    "lines_of_a_source": "import linecache\nassert linecache.getlines(PATH) == ['TOP SECRET\\n']",
    "copy_of_a_file": "import shutil\nshutil.copy(PATH, PATH + '.copy')",
    "temporary_file": "import tempfile\ntempfile.TemporaryFile().close()",
    "file_of_a_log": "import logging\nlogging.FileHandler(PATH).close()",
    "archive_on_disk": "import zipfile\nzipfile.ZipFile(PATH + '.zip', 'w').close()",
    "database_on_disk": "import sqlite3\nsqlite3.connect(PATH + '.db').execute('create table t (x)')",
    "database_attached": "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('attach ? as d', (PATH + "
    "'.db',))\n"
    "c.execute('create table d.t (x)')",
    "database_by_uri": (
        "import sqlite3\nsqlite3.connect('file:' + PATH + '.db?mode=rwc', "
        "uri=True).execute('create table t (x)')"
    ),
    "database_vacuumed_into_a_file": "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t (x)')\n"
    "c.execute('vacuum into ?', (PATH + '.db',))",
    "backup_of_a_database": (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.backup(sqlite3.connect(PATH + '.db'))"
    ),
    "a_real_event_loop": "import asyncio\nasyncio.SelectorEventLoop().close()",
    "program_of_a_real_event_loop": "import asyncio\nloop = asyncio.SelectorEventLoop()\n"
    "process = loop.run_until_complete(asyncio.create_subprocess_exec('/bin/true'))\n"
    "assert loop.run_until_complete(process.wait()) == 0\nloop.close()",
    "real_import": (
        "__builtins__['__import__'] = builtins.__import__\nimport "
        "subprocess\nsubprocess.run(['/bin/true'], check=True)"
    ),
    "signal_to_itself": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)",
    "signal_handler": "import signal\nsignal.signal(signal.SIGUSR1, print)",
    "write_to_the_error_output": "os.write(2, b'x')",
    "read_the_input": "os.read(0, 1)",
    "look_at_a_descriptor": "os.fstat(0)",
}
ESCAPES = {name: f"{REACH}{code}\nfinal_result = 'ESCAPED'" for name, code in _ESCAPES.items()}

REFUSED_ANYWAY = {
    # what this machine may lack, or refuse to an ordinary user, without the filter too
    name: f"{REACH}{code}\nfinal_result = 'ESCAPED'"
    for name, code in {
        "io_uring": "must(libc.syscall(425, 1, (ctypes.c_char * 256)()))",
        "clone3": "must(libc.syscall(435, (ctypes.c_char * 88)(), 88))",
        "user_namespace": "must(libc.unshare(0x10000000))",
        "mount": "must(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
        "chroot": "os.chroot('/')",
        "become_root": "os.setuid(0)",
        "userfaultfd": (
            "must(libc.syscall({'x86_64': 323, 'aarch64': "
            "282}[sys.implementation._multiarch.split('-')[0]], 1))"
        ),
        "bpf": (
            "must(libc.syscall({'x86_64': 321, 'aarch64': "
            "280}[sys.implementation._multiarch.split('-')[0]], 0, None, 0))"
        ),
        "perf": (
            "must(libc.syscall({'x86_64': 298, 'aarch64': "
            "241}[sys.implementation._multiarch.split('-')[0]], None, 0, -1, -1, 0))"
        ),
        "keyring": (
            "must(libc.syscall({'x86_64': 250, 'aarch64': "
            "219}[sys.implementation._multiarch.split('-')[0]], 0, -3, 0))"
        ),
        "kernel_log": "must(libc.klogctl(3, ctypes.create_string_buffer(64), 64))",
        "handle_of_a_file": (
            "must(libc.name_to_handle_at(-100, PATH.encode(), (ctypes.c_int * 64)(), "
            "(ctypes.c_int * 1)(), 0))"
        ),
        "reboot": "must(libc.reboot(0))",
        "raise_the_limits": "sys.modules['resource'].setrlimit(0, (99, 99))",
        "connection": "import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', 9))",
        "server": "import asyncio\nasyncio.run(asyncio.start_server(print, '127.0.0.1', 0))",
        "name_resolution": "import asyncio\nasyncio.run(asyncio.open_connection('localhost', 9))",
        "asyncio_program": "import asyncio\nasyncio.run(asyncio.create_subprocess_shell('true'))",
        "extension_of_a_database": "import sqlite3\nc = sqlite3.connect(':memory:')\nc.enable_load_extension(True)\n"
        "c.execute('select load_extension(?)', ('libm.so.6',))",
        "process_pool": (
            "import concurrent.futures.process as p\np.ProcessPoolExecutor().submit(len, "
            "'').result()"
        ),
        "x32_call": "must(libc.syscall(0x40000000 | 39))",
    }.items()
}

NO_MEMORY = re.compile(
    r"the code needs more memory than the 512 MiB that it may use( \(line \d+\))?|"
    r"the (code crashed the interpreter, .*|system killed the code.*)"
)
TOO_LONG = re.compile(r"the code took longer than \S+ s and was stopped")
CRASHED = re.compile(r"the code crashed the interpreter, as waiting for a thread does here")
PRINTS_TOO_MUCH = re.compile(r"the code prints more than it may: print only the answer \(line .*")
WITHOUT_ANSWER = re.compile(r"the code ended the process without an answer")
TOO_MUCH = re.compile(r"the code printed more than is allowed; print less, or write it to a file")
NOTHING = re.compile(
    r"the code gave no output: print the answer, end with an expression, or assign it to "
    r"final_result"
)
ONE_BY_ONE = re.compile(
    r"the code may only compute and use its files .* no threads, .* \(line \d+\)"
)
RUNNER = "frame = sys._getframe()\nwhile 'ANSWER' not in frame.f_globals: frame = frame.f_back\n"
ANY = re.compile(r"[^\n]{1,1000}")

BOUNDED = {
    # time
    "endless_loop": ("while True: pass", TOO_LONG),
    "endless_loop_that_catches_everything": (
        "while True:\n  try:\n    while True: 1/0\n  except BaseException: pass",
        TOO_LONG,
    ),
    "endless_in_c": ("sum(iter(int, 1))", TOO_LONG),
    "endless_text": (
        "class A:\n  def __str__(self):\n    while True: pass\nfinal_result = A()",
        TOO_LONG,
    ),
    "endless_text_of_an_error": (
        "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E",
        TOO_LONG,
    ),
    "huge_power": ("final_result = 10 ** 10 ** 8", TOO_LONG),
    "huge_factorial": ("import math\nfinal_result = math.factorial(10 ** 7)", TOO_LONG),
    "regex_that_explodes": (
        "import re\nfinal_result = re.match(r'(a+)+$', 'a' * 40 + 'b')",
        TOO_LONG,
    ),
    "endless_finally": ("try:\n  raise SystemExit\nfinally:\n  while True: pass", TOO_LONG),
    # memory
    "huge_list": ("final_result = [0] * 10 ** 10", NO_MEMORY),
    "growing_list": ("x = ['x']\nwhile True: x += x", NO_MEMORY),
    "growing_text": ("x = 'x' * 10 ** 6\nwhile True: x += x", NO_MEMORY),
    "memory_full_to_the_brim": (
        "keep = []\nfor size in (10 ** 7, 10 ** 5, 1000, 30):\n  try:\n    while True: "
        "keep.append(bytearray(size))\n"
        "  except MemoryError: pass\nraise MemoryError",
        NO_MEMORY,
    ),
    "memory_by_system_call": (
        f"{REACH}while True: must(libc.mmap(None, 2 ** 28, 3, 0x22, -1, 0))",
        re.compile(r"OSError: \[Errno 12\].*"),
    ),
    "format_width": ("final_result = f'{1:999999999999}'", ANY),
    # depth
    "deep_recursion": (
        "def f(): return f()\nf()",
        re.compile(r"RecursionError: maximum recursion depth exceeded \(line 1\)"),
    ),
    "recursion_without_a_limit": (
        f"{REACH}sys.setrecursionlimit(10 ** 9)\ndef f(): return [f() for _ in '1']\nf()",
        ANY,
    ),
    "recursion_in_c": (
        "class A:\n  def __repr__(self): return repr([self])\nfinal_result = A()",
        ANY,
    ),
    "nested_brackets": ("(" * 10**5, ANY),
    "nested_signs": ("final_result = " + "-" * 10**5 + "1", ANY),
    "nested_lists": ("x = []\nfor _ in range(10 ** 5): x = [x]\nfinal_result = x", ANY),
    # ends of the process
    "exit": ("raise SystemExit(0)", NOTHING),
    "interrupt": ("raise KeyboardInterrupt", re.compile(r"KeyboardInterrupt \(line 1\)")),
    "hard_exit": (f"{REACH}os._exit(0)", WITHOUT_ANSWER),
    "hard_exit_with_a_code": (f"{REACH}os._exit(3)", CRASHED),
    "abort": (f"{REACH}os.abort()", CRASHED),
    "null_pointer": (f"{REACH}ctypes.string_at(0)", CRASHED),
    "objects_overwritten": (f"{REACH}ctypes.memset(id(None), 255, 4096)", ANY),
    "generator_exit": ("raise GeneratorExit", re.compile(r"GeneratorExit \(line 1\)")),
    "error_that_cannot_be_shown": (
        "class E(Exception):\n  def __str__(self): raise SystemExit\nraise E",
        re.compile("the code raised an error that cannot be shown"),
    ),
    "type_name_of_a_megabyte": ("raise type('E' * 10 ** 6, (Exception,), {})", ANY),
    # output
    "flood": (f"{REACH}while True: os.write(1, b'A' * 65536)", TOO_MUCH),
    "flood_of_answers": (f"{REACH}while True: os.write(1, b'Ayes\\n')", TOO_MUCH),
    "prints": ("while True: print('x' * 10 ** 6)", PRINTS_TOO_MUCH),
    "faults_of_many_lines": ("raise ValueError('a\\nb\\n\\x1b[2Jc' * 1000)", ANY),
    "no_output_at_all": (f"{REACH}os.write = len\nfinal_result = 1", ANY),
    # the runner
    "builtins_broken": (
        f"{REACH}builtins.str = builtins.BaseException = None\nfinal_result = 1",
        ANY,
    ),
    "runner_broken": (f"{REACH}vars(sys.modules['__main__']).clear()\nfinal_result = 1", ANY),
    "runner_broken_from_within": (f"{REACH}{RUNNER}frame.f_globals.clear()\nfinal_result = 1", ANY),
    "unknown_outcome": (
        f"{REACH}{RUNNER}frame.f_globals['ANSWER'] = 'Z'\nfinal_result = 1",
        WITHOUT_ANSWER,
    ),
    "import_of_os": ("import os", NOTHING),
    "import_of_socket": (
        "import socket",
        re.compile(r"the code may not import socket: it can only compute, .*"),
    ),
    "import_by_name": (
        "final_result = __import__('subprocess')",
        re.compile(r"the code may not import subprocess: it can only compute, .*"),
    ),
    "import_of_a_submodule": (
        "import json.tool",
        re.compile(r"ModuleNotFoundError: .* \(line 1\)"),
    ),
    "import_with_an_effect": (
        "import antigravity",
        re.compile(r"the code may not import antigravity: .*"),
    ),
    "import_of_what_is_installed": (
        "import httpx",
        re.compile(r"there is no module httpx here: only those that come with Python .*"),
    ),
    "import_of_what_lies_around": (
        "import lying_around",
        re.compile(r"there is no module lying_around here: .*"),
    ),
    # what an ordinary program may do, without an end
    "sleeps": ("import time\nwhile True: time.sleep(10 ** 6)", TOO_LONG),
    "loop_without_tasks": ("import asyncio\nasyncio.new_event_loop().run_forever()", ONE_BY_ONE),
    "tasks_without_number": (
        (
            "import asyncio\nasync def f():\n  while True: asyncio.ensure_future(f()); await "
            "asyncio.sleep(0)\nasyncio.run(f())"
        ),
        ONE_BY_ONE,
    ),
    "threads_without_number": (
        "import threading\ndef f():\n  while True: threading.Thread(target=f).start()\nf()",
        ONE_BY_ONE,
    ),
    "work_without_number": (
        (
            "from concurrent.futures import ThreadPoolExecutor\npool = "
            "ThreadPoolExecutor()\ndef f(): return pool.submit(f).result()\nf()"
        ),
        ONE_BY_ONE,
    ),
    "thread_that_waits": ("import queue\nqueue.Queue().get()", CRASHED),
    "lock_taken_twice": (
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        ANY,
    ),
    "query_without_an_end": (
        "import sqlite3\nsqlite3.connect(':memory:').execute('with recursive c(x) as "
        "(select 1 union all select x + 1 from c) "
        "select count(*) from c').fetchall()",
        TOO_LONG,
    ),
    "database_without_bounds": (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t (x)')\n"
        "while True: c.execute('insert into t values (zeroblob(10000000))')",
        NO_MEMORY,
    ),
    "input": ("input('?')", re.compile(r"there is no input and .* \(line 1\)")),
    "input_of_a_filter": (
        "import sys\nfor line in sys.stdin: pass",
        re.compile(r"there is no input and .* \(line 2\)"),
    ),
    "prints_of_a_character": ("while True: print('x', end='')", TOO_LONG),
    "bytes_without_end": (
        "import sys\nwhile True: sys.stdout.buffer.write(b'x' * 10 ** 6)",
        PRINTS_TOO_MUCH,
    ),
    "output_closed": ("import sys\nsys.stdout.close()\nx = 1", NOTHING),
    "output_taken_away": ("import sys\nsys.stdout = None\nprint(1)", NOTHING),
    "output_taken_apart": ("import sys\nsys.stdout.detach()", ANY),
    "endless_text_of_the_last_line": (
        "class A:\n  def __repr__(self):\n    while True: pass\nA()",
        TOO_LONG,
    ),
    "endless_text_of_an_exit": (
        "class A:\n  def __str__(self):\n    while True: pass\nraise SystemExit(A())",
        TOO_LONG,
    ),
    "exit_with_a_word": (
        "import sys\nsys.exit('no data')",
        re.compile(r"the code ended itself: no data \(line 2\)"),
    ),
    "zones_without_number": (
        "import zoneinfo\n" + " ".join(f"'A{n}/B'" for n in range(5 * 10**4)),
        ANY,
    ),
    "zone_outside": ("import zoneinfo\nzoneinfo.ZoneInfo('..')", re.compile(r"ValueError: .*")),
    # the text of the program
    "null_character": ("final_result = 1\0", ANY),
    "lone_surrogate": ("final_result = '\ud800'", ANY),
    "syntax_error": (
        "final_result = (1",
        re.compile(r"SyntaxError: '\(' was never closed \(line 1\)"),
    ),
    "wrong_indentation": (
        "if True:\nfinal_result = 1",
        re.compile(r"IndentationError: .* \(line 2\)"),
    ),
    "nothing": ("", NOTHING),
    "too_long_a_program": (
        "#" * 1_000_001,
        re.compile(r"the code has more than 1,000,000 characters"),
    ),
}

OWN_ANSWERS = {
    "forged_outcome": (f"{REACH}os.write(1, b'7:Aforged')\nos._exit(0)", "forged"),
    "forged_outcome_of_bad_bytes": (
        f"{REACH}os.write(1, b'3:A\\xff\\xfe')\nos._exit(0)",
        "\ufffd\ufffd",
    ),
    "forged_confirmation": (f"{REACH}os.write(1, b'2:AC')\nfinal_result = 1", "C"),
    "control_characters": ("final_result = '\\x1b[31m\\0\\r'", "\ufffd[31m\ufffd\ufffd"),
    "lone_surrogate_as_a_result": ("final_result = chr(0xd800) + 'x'", "?x"),
    "no_environment": (
        f"{REACH}final_result = [name for name in os.environ if name != 'LC_CTYPE']",
        "[]",
    ),
    "nothing_of_ours": (
        f"{REACH}final_result = [name for name in sys.modules if 'babyagi' in name]",
        "[]",
    ),
    "no_arguments_of_ours": (f"{REACH}final_result = len(sys.argv)", "1"),
    "a_megabyte_of_program": ("x = 1\n" * 160_000 + "final_result = x", "1"),
    "another_text_type": (
        (
            "class T(str):\n  def __getitem__(self, key): return 'mine'\n  def "
            "__len__(self): return 1\nfinal_result = T('x')"
        ),
        "x",
    ),
    "sorted_by_a_broken_print": ("print = None\nfinal_result = sorted([2, 1])", "[1, 2]"),
}
