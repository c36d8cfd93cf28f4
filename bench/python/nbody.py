bodies = [
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.47],
    [4.84, -1.16, -0.10, 0.60, 2.81, -0.02, 0.037],
    [8.34, 4.12, -0.40, -1.01, 1.82, 0.008, 0.011],
    [12.89, -15.11, -0.22, 1.08, 0.86, -0.01, 0.0017],
    [15.37, -25.91, 0.17, 0.97, 0.59, -0.03, 0.002],
]

def advance(steps, dt):
    for _ in range(steps):
        for i in range(5):
            a = bodies[i]
            for j in range(i + 1, 5):
                b = bodies[j]
                dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
                pull = dt / ((dx * dx + dy * dy + dz * dz) ** 1.5)
                ma, mb = a[6] * pull, b[6] * pull
                a[3] -= dx * mb
                a[4] -= dy * mb
                a[5] -= dz * mb
                b[3] += dx * ma
                b[4] += dy * ma
                b[5] += dz * ma
        for a in bodies:
            a[0] += dt * a[3]
            a[1] += dt * a[4]
            a[2] += dt * a[5]

advance(20000, 0.01)
