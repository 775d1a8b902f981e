"""The platform of a stream is found from its Python module or from what the process has loaded. No library of XSched is used."""
import pathlib
import sys
import types
import unittest
from unittest import mock

from xsched import streams
from xsched.platforms import PLATFORMS
from xsched.streams import STREAM_PLATFORMS, platform_of


def stream_of(module):
    return type("Stream", (), {"__module__": module})()


class PlatformOf(unittest.TestCase):
    def setUp(self):
        streams._only_loaded.cache_clear()

    def test_a_stream_of_pyopencl_is_its_modules(self):
        self.assertEqual(platform_of(stream_of("pyopencl._cl")), "opencl")

    def test_a_stream_of_torch_is_what_torch_was_built_for(self):
        for built_for in ("cuda", "hip"):
            version = types.SimpleNamespace(**{"cuda": None, "hip": None, built_for: "13.0"})
            with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(version=version)}):
                self.assertEqual(platform_of(stream_of("torch.cuda.streams")), built_for)

    def test_a_stream_of_a_torch_that_was_built_for_none_is_an_error(self):
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(version=types.SimpleNamespace(cuda=None, hip=None))}):
            with self.assertRaisesRegex(ValueError, 'built for none of "cuda"'):
                platform_of(stream_of("torch.xpu.streams"))

    def test_a_stream_of_cupy_is_what_cupy_was_built_for(self):
        for is_hip, expected in ((False, "cuda"), (True, "hip")):
            cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=types.SimpleNamespace(is_hip=is_hip)))
            with mock.patch.dict(sys.modules, {"cupy": cupy}):
                self.assertEqual(platform_of(stream_of("cupy.cuda.stream")), expected)

    def assert_loaded(self, maps, expected, stream=1):
        with mock.patch("builtins.open", mock.mock_open(read_data=maps)) as opened:
            self.assertEqual(platform_of(stream), expected)
        return opened

    def test_another_stream_is_of_the_only_runtime_that_is_loaded(self):
        self.assert_loaded("7f00 r-xp /opt/rocm/lib/libamdhip64-e487.so.7\n", "hip", stream=1)
        self.assert_loaded("7f00 r-xp /usr/lib/libcuda.so.1\n7f01 r-xp /usr/lib/libcudart.so\n", "cuda", stream=2)

    def test_the_platform_of_a_stream_is_looked_for_once(self):
        self.assert_loaded("7f00 r-xp /usr/lib/libcuda.so.1\n", "cuda")
        self.assert_loaded("", "cuda").assert_not_called()

    def test_where_it_is_not_known_the_error_names_all_platforms(self):
        for maps, loaded in (("", "none"), ("7f00 /usr/lib/libcuda.so.1\n7f01 /usr/lib/libOpenCL.so.1\n", "cuda and opencl")):
            with self.assertRaisesRegex(ValueError, f'has loaded {loaded}: say platform="cuda", "hip" or "opencl"'):
                self.assert_loaded(maps, None)


class Streams(unittest.TestCase):
    def test_the_default_streams_and_those_of_pytorchs_pool_are_never_destroyed(self):
        pooled, foreign, other = stream_of("torch"), stream_of("torch"), stream_of("cupy.cuda.stream")
        pooled.stream_id, foreign.stream_id = 35, 0x7F00
        self.assertTrue(streams.lasts(other, 0))
        self.assertTrue(streams.lasts(pooled, 0x7F00))
        self.assertFalse(streams.lasts(foreign, 0x7F00), "another library has made it")
        self.assertFalse(streams.lasts(other, 0x7F00))
        self.assertFalse(streams.lasts(0x7F00, 0x7F00))

    def test_the_device_of_a_stream_is_what_its_framework_shows(self):
        of_torch, of_cupy, any_device = stream_of("torch"), stream_of("cupy.cuda.stream"), stream_of("cupy.cuda.stream")
        of_torch.device, of_cupy.device_id, any_device.device_id = types.SimpleNamespace(index=3), 2, -1
        cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=types.SimpleNamespace(getDevice=lambda: 1)))
        with mock.patch.dict(sys.modules, {"cupy": cupy}):
            self.assertEqual([streams.device_of(stream) for stream in (of_torch, of_cupy, any_device, None, 0)], [3, 2, 1, None, None])


class Platforms(unittest.TestCase):
    def test_each_has_a_module_of_its_name(self):
        source = pathlib.Path(__file__).resolve().parents[2] / "src" / "platforms"
        self.assertEqual(set(PLATFORMS), {folder.name for folder in source.iterdir() if folder.is_dir()})
        self.assertEqual(set(PLATFORMS) - set(STREAM_PLATFORMS), {"soft"})


if __name__ == "__main__":
    unittest.main()
