// HIP, of AMD.
