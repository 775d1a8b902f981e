# /// script
# requires-python = ">=3.11"
# dependencies = ["openmm==8.6.1", "openmm-hip-7==8.6.1", "numpy==2.3.5"]
# ///
"""OpenMM simulates argon. Its plugin compiles kernels with hiprtc."""
import itertools

import openmm

EDGE = 6
DISTANCE_NM = 0.4


def argon():
    system = openmm.System()
    force = openmm.NonbondedForce()
    for _ in range(EDGE**3):
        system.addParticle(39.9)
        force.addParticle(0, 0.34, 1.0)
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(0.9)
    size = EDGE * DISTANCE_NM
    system.setDefaultPeriodicBoxVectors((size, 0, 0), (0, size, 0), (0, 0, size))
    system.addForce(force)
    return system


def simulate(steps):
    """Its potential energy after so many steps."""
    integrator = openmm.VerletIntegrator(0.001)
    context = openmm.Context(argon(), integrator, openmm.Platform.getPlatformByName("HIP"), {"Precision": "single"})
    context.setPositions([openmm.Vec3(*(DISTANCE_NM * place for place in places)) for places in itertools.product(range(EDGE), repeat=3)])
    integrator.step(steps)
    return context.getState(energy=True).getPotentialEnergy()


if __name__ == "__main__":
    print(simulate(500))
